VERSION = "0.3.0"
"""Of all of Tandem: a node that runs another one shows it in the panel."""
