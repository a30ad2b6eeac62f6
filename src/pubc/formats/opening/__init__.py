"""From a path to a checked set, once: which format, from the cache or a child process."""
