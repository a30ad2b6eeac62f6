"""Commands about runs of the filter."""
