"""A BMC, read over Redfish: the old resources and the new ones."""
