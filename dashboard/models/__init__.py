"""What the fleet should be, what it is, and who may change it."""

from dashboard.models.access import ApiKey
from dashboard.models.catalog import Model
from dashboard.models.chat import Conversation, Message
from dashboard.models.deployments import Deployment, Fallback
from dashboard.models.fleet import Node
from dashboard.models.history import Event, Job, JobStep, LogLine
from dashboard.models.replicas import PortLease, Rank, Replica
from dashboard.models.slots import Slot

__all__ = [
    "ApiKey",
    "Conversation",
    "Deployment",
    "Event",
    "Fallback",
    "Job",
    "JobStep",
    "LogLine",
    "Message",
    "Model",
    "Node",
    "PortLease",
    "Rank",
    "Replica",
    "Slot",
]
