"""The configuration as one document: read strictly, compared with what is, applied in one go.

```yaml
tandem: 1
panel: {language: en}
nodes: {node-a: {memory_floor_mb: 2048}}
templates: {long: {note: For contracts, settings: {max_batch_size: 4}}}
deployments:
  smollm2: {model: smollm2-135m-instruct, run: true, settings: {tp: 2}, fallback: null}
teams: {office: {members: [ada], deployments: [smollm2], nodes: []}}
```

A part that a document leaves out stays as it is, and so do things that a part does not name, unless
it is applied with `prune`. Within the settings of a thing that it names, what is left out takes its
default. Secrets stand in it by name alone.
"""

from dashboard.declaring.applying import apply, changes, differences
from dashboard.declaring.changes import Change, Difference
from dashboard.declaring.drift import Drift, drift
from dashboard.declaring.exporting import export
from dashboard.declaring.problems import DocumentRefused
from dashboard.declaring.reading import Document, load

__all__ = [
    "Change",
    "Difference",
    "Document",
    "DocumentRefused",
    "Drift",
    "apply",
    "changes",
    "differences",
    "drift",
    "export",
    "load",
]
