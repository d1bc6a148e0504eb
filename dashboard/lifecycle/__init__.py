"""The only writer of any status: a guarded change, an event row, an announcement on commit."""

from dashboard.lifecycle.deployments import (
    delete_deployment,
    request_deploy,
    request_restart,
    request_return,
    request_stop,
)
from dashboard.lifecycle.desired import desired_for
from dashboard.lifecycle.limits import follow_schedule
from dashboard.lifecycle.nodes import (
    beat,
    connect,
    create_node,
    disconnect,
    node_with_token,
    remove_node,
    rotate_token,
    set_schedulable,
)
from dashboard.lifecycle.observation import observe
from dashboard.lifecycle.reconcile import prune_log, reconcile
from dashboard.lifecycle.resume import resume_on
from dashboard.lifecycle.sources import remove_source, save_source

__all__ = [
    "beat",
    "connect",
    "create_node",
    "delete_deployment",
    "desired_for",
    "disconnect",
    "follow_schedule",
    "node_with_token",
    "observe",
    "prune_log",
    "reconcile",
    "remove_node",
    "remove_source",
    "request_deploy",
    "request_restart",
    "request_return",
    "request_stop",
    "resume_on",
    "rotate_token",
    "save_source",
    "set_schedulable",
]
