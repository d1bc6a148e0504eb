"""Boxes that are not there: agents that speak the real protocol and make up what they measure."""
