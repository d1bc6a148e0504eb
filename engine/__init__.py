VERSION = "0.6.0"
"""Of all of Tandem: a node that runs another one shows it in the panel."""
