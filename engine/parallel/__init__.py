"""Groups of ranks and their collectives."""

from engine.parallel.activity import ActivityLog
from engine.parallel.group import Alone, Group, LinkedGroup
from engine.parallel.mesh import Mesh, build_mesh, join_store, open_store
from engine.parallel.nccl import local_place

__all__ = [
    "ActivityLog",
    "Alone",
    "Group",
    "LinkedGroup",
    "Mesh",
    "build_mesh",
    "join_store",
    "local_place",
    "open_store",
]
