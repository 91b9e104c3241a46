"""Files that several processes share: atomic writes, locks, and owners of unfinished work."""
