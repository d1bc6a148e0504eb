"""Pages about firmware, and the address under which images are fetched."""
