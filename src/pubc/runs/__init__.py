"""A run of the filter: configuration, folder, document, statuses, and how it is carried out."""
