"""What the fleet should be, what it is, and who may change it."""

from dashboard.models.access import ApiKey
from dashboard.models.catalog import Model
from dashboard.models.chat import Conversation, Message
from dashboard.models.deployments import Deployment, PortLease, Rank, Replica
from dashboard.models.fleet import Node
from dashboard.models.history import Event, Job, JobStep, LogLine

__all__ = [
    "ApiKey",
    "Conversation",
    "Deployment",
    "Event",
    "Job",
    "JobStep",
    "LogLine",
    "Message",
    "Model",
    "Node",
    "PortLease",
    "Rank",
    "Replica",
]
