"""`manage.py up`: every process of Tandem on one machine, started, watched and stopped together."""
