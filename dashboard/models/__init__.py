"""What the fleet should be, what it is, and who may change it."""

from dashboard.models.access import ApiKey
from dashboard.models.accounts import Account, Team
from dashboard.models.audit import AuditEntry
from dashboard.models.budgets import Budget, RoutePrice
from dashboard.models.catalog import Model
from dashboard.models.chat import Conversation, Message
from dashboard.models.declared import DeclaredDocument
from dashboard.models.deployments import Deployment, Fallback
from dashboard.models.fetches import FirmwareFetch
from dashboard.models.firmware import FirmwareImage, FirmwareKey, FirmwarePart, TestedSet
from dashboard.models.fleet import Node
from dashboard.models.history import Event, Job, JobStep, LogLine
from dashboard.models.identity import IdentityProvider
from dashboard.models.replicas import PortLease, Rank, Replica
from dashboard.models.requests import ApiRequest
from dashboard.models.revisions import Revision
from dashboard.models.rollouts import NodeUpdate, Rollout, UpdateNote
from dashboard.models.secrets import Secret
from dashboard.models.slots import Slot
from dashboard.models.templates import SettingsTemplate

__all__ = [
    "Account",
    "ApiKey",
    "ApiRequest",
    "AuditEntry",
    "Budget",
    "Conversation",
    "DeclaredDocument",
    "Deployment",
    "Event",
    "Fallback",
    "FirmwareFetch",
    "FirmwareImage",
    "FirmwareKey",
    "FirmwarePart",
    "IdentityProvider",
    "Job",
    "JobStep",
    "LogLine",
    "Message",
    "Model",
    "Node",
    "NodeUpdate",
    "PortLease",
    "Rank",
    "Replica",
    "Revision",
    "Rollout",
    "RoutePrice",
    "Secret",
    "SettingsTemplate",
    "Slot",
    "Team",
    "TestedSet",
    "UpdateNote",
]
