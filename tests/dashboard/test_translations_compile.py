import gettext
import os
from pathlib import Path

from dashboard.translations import compile_stale

SOURCE = """
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"

msgid "Ready"
msgstr "就绪"

msgid "%(count)s rank"
msgid_plural "%(count)s ranks"
msgstr[0] "%(count)s 个分片"

msgctxt "verb"
msgid "Stop"
msgstr "停止"

#, fuzzy
msgid "Doubtful"
msgstr "可疑"
"""


def write_source(locale: Path) -> Path:
    source = locale / "zh_Hans" / "LC_MESSAGES" / "django.po"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE, encoding="utf-8")
    return source


def test_sources_become_catalogues_that_gettext_reads(tmp_path: Path) -> None:
    source = write_source(tmp_path)
    assert compile_stale(tmp_path) == [source.with_suffix(".mo")]
    catalogue = gettext.translation("django", tmp_path, ["zh_Hans"])
    assert catalogue.gettext("Ready") == "就绪"
    assert catalogue.ngettext("%(count)s rank", "%(count)s ranks", 2) == "%(count)s 个分片"
    assert catalogue.pgettext("verb", "Stop") == "停止"
    assert catalogue.gettext("Doubtful") == "Doubtful"


def test_only_stale_catalogues_are_written_again(tmp_path: Path) -> None:
    source = write_source(tmp_path)
    compile_stale(tmp_path)
    assert compile_stale(tmp_path) == []
    newer = source.with_suffix(".mo").stat().st_mtime_ns + 1_000_000_000
    os.utime(source, ns=(newer, newer))
    assert compile_stale(tmp_path) == [source.with_suffix(".mo")]
