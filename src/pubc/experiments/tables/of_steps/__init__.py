"""Tables about single steps: what is cloned of them, and how rightly they are told apart."""
