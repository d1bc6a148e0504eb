"""Processor and memory of one process, under the subject it works for."""

import os
import subprocess
import sys
import time

from monitoring.probes.process import ProcessProbe


def test_the_first_share_is_absent_and_the_second_real() -> None:
    probe = ProcessProbe(lambda: {"launch:l1:rank0": os.getpid()})
    first = {sample.metric: sample for sample in probe.read()}
    assert first["process_cpu_ratio"].reason == "A process's share needs a second reading."
    assert (first["process_memory_bytes"].value or 0) > 1 << 20
    _work()
    second = {sample.metric: sample for sample in probe.read()}
    assert (second["process_cpu_ratio"].value or 0) > 0
    assert {sample.subject for sample in second.values()} == {"launch:l1:rank0"}


def _work() -> None:
    """For some of the ticks in which the kernel counts processor time."""
    began = time.process_time()
    while time.process_time() - began < 0.05:
        sum(range(10_000))


def test_a_process_that_has_ended_costs_only_its_own_values() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=20)
    probe = ProcessProbe(lambda: {"launch:l1:rank0": gone.pid, "launch:l1:head": os.getpid()})
    samples = {(sample.subject, sample.metric): sample for sample in probe.read()}
    assert samples["launch:l1:rank0", "process_memory_bytes"].reason == "The process has ended."
    assert samples["launch:l1:head", "process_memory_bytes"].value
