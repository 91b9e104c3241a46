"""Pictures and pages from run records."""
