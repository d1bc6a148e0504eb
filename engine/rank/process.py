"""A rank's life: meet, load, warm up, then steps until it is told to stop."""

import time
from datetime import timedelta
from typing import NoReturn

import msgspec
import torch
from torch._C._distributed_c10d import Store
from torch.distributed import DistError

from engine.checkpoint import Checkpoint, open_checkpoint
from engine.config import BLOCK_SIZE
from engine.device import choose_device
from engine.errors import (
    CheckpointError,
    ConfigError,
    DeadlineError,
    EngineError,
    ProtocolError,
    RankError,
    Said,
    said,
)
from engine.errors import gettext_noop as _
from engine.kernels import choose_linear
from engine.kernels.native import set_threads
from engine.models import Decoder, load_decoder
from engine.parallel import Mesh, build_mesh, join_store, local_place, open_store
from engine.protocol.launch import EPOCH_OVER, GIVEN_UP, ProcessSpec
from engine.protocol.steps import (
    Failed,
    Fit,
    Join,
    Meeting,
    Progress,
    Ready,
    Step,
    StepDone,
)
from engine.rank.fitting import measure
from engine.rank.lifeline import at_work, say
from engine.rank.memory import machine_id
from engine.rank.session import Session, reach_head
from engine.runner import Runner
from engine.shards import RankShare, rank_share
from engine.text.tokenizer import TextTokenizer

MEETING_SECONDS = 180.0
"""Other ranks may still be starting on slower boxes."""
FITTING_SECONDS = 3600.0
"""Other ranks may still be loading; the head watches that they make progress."""
PROGRESS_SECONDS = 0.1
_OTHERS = (RankError, DeadlineError, ConnectionError, TimeoutError, DistError)
"""What a rank fails with when somebody else has gone: a peer, the rendezvous, the head that hung up
while it was told something."""


def run_rank(spec: ProcessSpec) -> int:
    """Exit code of the process. A failure is said in the log and, if it listens, to the head."""
    session: Session | None = None
    try:
        session, epoch = reach_head(spec)
        _Rank(spec, session, epoch).live()
    except (EngineError, RuntimeError, OSError, MemoryError) as error:
        reason = _sentence(error)
        say(str(reason))
        if session is not None:
            _tell(session, reason)
        return _exit_code(error)


def _exit_code(error: BaseException) -> int:
    """What is to be done: nothing that another start would cure, or start again, or start again and
    know that this one was to blame."""
    if isinstance(error, (ConfigError, CheckpointError)):
        return GIVEN_UP
    return EPOCH_OVER if isinstance(error, _OTHERS) else 1


def _sentence(error: BaseException) -> Said:
    if isinstance(error, EngineError):
        return error.said
    if isinstance(error, MemoryError):
        return said(_("This rank ran out of memory."))
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return said(_("This rank failed: %(reason)s"), reason=said(first))


def _tell(session: Session, reason: Said) -> None:
    try:
        session.send(Failed(reason))
    except OSError as error:
        say(f"The head could not be told: {error.strerror}.")


class _Rank:
    def __init__(self, spec: ProcessSpec, session: Session, epoch: int) -> None:
        if spec.rank is None:
            raise RankError(_("A rank needs its number."))
        self.spec = spec
        self.session = session
        self.epoch = epoch
        self.rank: int = spec.rank
        self.plan = spec.config.plan
        self.began = time.monotonic()
        self.reported = 0.0
        self.brief = False
        """Whether a short warm-up will do."""
        set_threads(spec.config.threads_per_rank)

    def live(self) -> NoReturn:
        # A number type that this processor lacks is refused before anything is read.
        self.kernel, self.linear = choose_linear(self.spec.config)
        checkpoint = open_checkpoint(self.spec.model_path)
        share = rank_share(checkpoint.config, self.plan, self.rank)
        store = self._meet()
        self.device = self._choose_device(store)
        mesh = self._build_mesh(store)
        decoder = self._fit(checkpoint, self._load(checkpoint, share, mesh))
        blocks = decoder.cache.num_blocks
        runner = Runner(
            checkpoint.config,
            msgspec.structs.replace(self.spec.config, kv_cache_tokens=blocks * BLOCK_SIZE),
            decoder,
            self.epoch,
            checkpoint.token_count,
            lambda: TextTokenizer(checkpoint.tokenizer),
        )
        self._warm_up(runner)
        if share.stage_rank == 0:
            self.session.expert_tokens = decoder.expert_tokens
        self._report_ready(decoder, share, mesh)
        while True:
            self._serve(runner, self.session.next())

    def _meet(self) -> Store:
        """Rank 0 opens the rendezvous; the head tells the others where it is."""
        self.session.phase = "meeting"
        timeout = timedelta(seconds=MEETING_SECONDS)
        if self.rank == 0:
            store = open_store(self.spec.host, timeout)
            self.session.send(Meeting(self.spec.host, store.port))
            self.session.expect(Join, MEETING_SECONDS)
            return store
        join = self.session.expect(Join, MEETING_SECONDS)
        return join_store(join.host, join.port, timeout)

    def _choose_device(self, store: Store) -> torch.device:
        """The n-th rank of this launch on a box takes the n-th GPU that it sees there."""
        if self.spec.config.device == "cpu":
            return choose_device(self.spec.config, 0)
        place = local_place(store, self.rank, self.plan.world_size, machine_id)
        device = choose_device(self.spec.config, place)
        say(f"Rank {self.rank} computes on {torch.cuda.get_device_name(device)}, {device}.")
        return device

    def _build_mesh(self, store: Store) -> Mesh:
        self.session.send(Progress("meeting", None, _("Connecting to the other ranks")))
        spec = self.spec
        mesh = build_mesh(spec.config, self.rank, spec.host, spec.token, store, self.device)
        self.session.activity = mesh.activity.read
        if self.plan.world_size > 1:
            say(f"Rank {self.rank} is connected to its peers over {mesh.transport}.")
        return mesh

    def _load(self, checkpoint: Checkpoint, share: RankShare, mesh: Mesh) -> Decoder:
        self.session.phase = "loading"
        began = time.monotonic()
        # Keys and values get their room once it is known how much there is.
        config = msgspec.structs.replace(self.spec.config, kv_cache_tokens=2 * BLOCK_SIZE)
        decoder = load_decoder(
            checkpoint, config, share, self.linear, mesh, self._report_progress, self.device
        )
        self.load_seconds = time.monotonic() - began
        say(
            f"Rank {self.rank} loaded layers {share.layers.start} to {share.layers.stop - 1}, "
            f"{share.kv_heads.size} of {checkpoint.config.num_kv_heads} KV heads: "
            f"{decoder.weight_bytes / 1e6:.0f} MB in {self.load_seconds:.1f} s."
        )
        return decoder

    def _fit(self, checkpoint: Checkpoint, decoder: Decoder) -> Decoder:
        """Tell what memory is left; the head answers with what all ranks have room for."""
        self.session.phase = "fitting"
        self.session.send(measure(self.spec, checkpoint.config, self.rank, decoder.cache))
        fit = self.session.expect(Fit, FITTING_SECONDS)
        self.brief = fit.brief
        return decoder.resized(fit.kv_blocks)

    def _report_progress(self, fraction: float, detail: str) -> None:
        now = time.monotonic()
        if now - self.reported > PROGRESS_SECONDS or fraction >= 1:
            self.reported = now
            self.session.send(Progress("loading", fraction, detail))

    def _warm_up(self, runner: Runner) -> None:
        self.session.phase = "warming"
        self.session.send(Progress("warming", None, _("First pass through every layer")))
        runner.warm_up(full=not self.brief)

    def _report_ready(self, decoder: Decoder, share: RankShare, mesh: Mesh) -> None:
        seconds = time.monotonic() - self.began
        say(f"Rank {self.rank} is ready after {seconds:.1f} s, with the {self.kernel} kernel.")
        self.session.phase = "idle"
        at_work()
        self.session.send(
            Ready(
                weight_bytes=decoder.weight_bytes,
                kv_bytes=decoder.cache.nbytes,
                load_seconds=self.load_seconds,
                kv_heads=share.kv_heads.size,
                first_layer=share.layers.start,
                last_layer=share.layers.stop - 1,
                kernel=self.kernel,
                transport=mesh.transport,
            )
        )

    def _serve(self, runner: Runner, message: object) -> None:
        if not isinstance(message, Step):
            raise ProtocolError(
                _("The head sent %(kind)s where a step was due."), kind=type(message).__name__
            )
        self.session.step, self.session.phase = message.n, "step"
        outcome = runner.run(message)
        self.session.phase = "idle"
        if self.rank == self.plan.output_rank:
            self.session.send(outcome.result(message.n))
        else:
            self.session.send(StepDone(message.n, outcome.timings))
