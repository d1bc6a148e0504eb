"""Every setting, declared once: forms, the API, YAML and documentation are made from these."""
