"""A learner's card as one HTML page: no scripts, no requests, light and dark, any width."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from siesta import __version__
from siesta.files import disk_errors, replace_file
from siesta.head.kinds import COSINE
from siesta.learner.card import Accuracy, ClassCard, LearnerCard, read_card
from siesta.learner.sleep_plot import sleep_plot

__all__ = ["render_card", "write_card"]

_MATRIX_CLASSES = 20  # above which confusions are listed and not shown as a matrix
_LISTED = 20  # of confusions
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write_card(path: str | Path, file: str | Path) -> int:
    """Write the card of the learner at `path` into an HTML file, which is replaced; return its size in bytes."""
    data = render_card(read_card(path)).encode()
    with disk_errors(Path(file)):
        replace_file(Path(file), data)
    return len(data)


def render_card(card: LearnerCard) -> str:
    """Return the page; the same card gives the same text."""
    style = (resources.files("siesta.learner") / "card.css").read_text("utf-8")
    body = "\n".join((_head(card), *_sections(card)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(card.name)}: card</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(card: LearnerCard) -> str:
    held_out = card.held_out
    facts = [
        (f"{len(card.classes):,}", "classes"),
        (f"{sum(each.taught for each in card.classes):,}", "samples learned"),
        (f"{len(card.info.sleeps):,}", "sleep" if len(card.info.sleeps) == 1 else "sleeps"),
        (_percent(held_out.share), f"right on {held_out.samples:,} held-out samples"),
    ]
    listed = "".join(f"<li><b>{escape(value)}</b> {escape(name)}</li>" for value, name in facts)
    made = escape(f"generation {card.generation}, made {_date(card.made)}")
    return f'<header><h1 dir="auto">{escape(card.name)}</h1><p>{made}</p><ul class="facts">{listed}</ul></header>'


def _sections(card: LearnerCard) -> Iterator[str]:
    yield _section("Classes", _held_out_note(card) + _classes(card))
    if card.held_out.samples:
        yield _section("Confusion", _confusion(card))
    if card.info.sleeps:
        yield _section("Sleeps", _sleeps(card))
    yield _section("Memory", _memory(card))
    yield _section("Made with", _pairs(_settings(card)))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _held_out_note(card: LearnerCard) -> str:
    if not card.held_out.samples:
        return "<p>No accuracy is shown: samples are held out from 20 of a class on, and no class has as many yet.</p>"
    words = f"Accuracy on all held-out samples, which no sleep rehearses: {_with_interval(card.held_out)}."
    if card.undecided is not None:
        words += (
            " Some of them decided when sleeps ended and which weights are used; on the others alone it is "
            f"{_with_interval(card.undecided)}."
        )
    if card.optimistic:
        words += " It is optimistic, because they also decided which weights are used."
    if card.info.head == COSINE:
        words += " It is optimistic, because the class means of the cosine head count them since the last sleep."
    return f"<p>{words}</p>"


def _classes(card: LearnerCard) -> str:
    with_pictures = any(each.pictures for each in card.classes)
    columns = ["class", "held-out accuracy", "learned", "stored", *(["newest samples"] if with_pictures else [])]
    rows = "\n".join(_class_row(each, with_pictures) for each in card.classes)
    return _table(columns, rows)


def _class_row(each: ClassCard, with_pictures: bool) -> str:
    images = "".join(_image(picture) for picture in each.pictures)
    pictures = f'<td class="pictures">{images}</td>' if with_pictures else ""
    return (
        f'<tr><th scope="row" dir="auto">{escape(each.label)}</th><td>{_accuracy_bar(each.held_out)}</td>'
        f"<td>{each.taught:,}</td><td>{each.stored:,}</td>{pictures}</tr>"
    )


def _image(picture: bytes) -> str:
    data = base64.b64encode(picture).decode()
    return f'<img alt="" width="48" height="48" src="data:image/webp;base64,{data}">'


def _accuracy_bar(accuracy: Accuracy) -> str:
    if accuracy.share is None or accuracy.interval is None:
        return '<span class="soft">none held out</span>'
    low, high = (100 * bound for bound in accuracy.interval)
    bar = (
        f'<span class="bar" aria-hidden="true"><i style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
        f'<b style="left:{100 * accuracy.share:.1f}%"></b></span>'
    )
    return f'{bar}{accuracy.right} of {accuracy.samples} <span class="soft">({low:.0f} to {high:.0f} %)</span>'


def _confusion(card: LearnerCard) -> str:
    if len(card.classes) > _MATRIX_CLASSES:
        return _confusion_list(card)
    columns = ["true class", *(each.label for each in card.classes)]
    rows = []
    for each, counts in zip(card.classes, card.confusion, strict=True):
        cells = "".join(_cell(int(count), int(counts.sum())) for count in counts)
        rows.append(f'<tr><th scope="row" dir="auto">{escape(each.label)}</th>{cells}</tr>')
    note = "<p>Rows are true classes, columns are answers; numbers are held-out samples.</p>"
    return note + _table(columns, "\n".join(rows), "matrix")


def _cell(count: int, total: int) -> str:
    share = round(100 * count / total) if total else 0
    return f'<td style="--share:{share}%">{count or ""}</td>'


def _confusion_list(card: LearnerCard) -> str:
    found = card.confusions()
    if not found:
        return "<p>No held-out sample is confused with another class.</p>"
    shown = found[:_LISTED]
    rows = "\n".join(
        f'<tr><th scope="row" dir="auto">{escape(truth)}</th><td dir="auto">{escape(answer)}</td><td>{count}</td></tr>'
        for truth, answer, count in shown
    )
    note = f"<p>The {len(shown)} most frequent of {len(found):,} confusions.</p>" if len(found) > len(shown) else ""
    return note + _table(["true class", "answer", "held-out samples"], rows, "confusions")


def _sleeps(card: LearnerCard) -> str:
    rows = "\n".join(_sleep_row(number, report) for number, report in enumerate(card.info.sleeps, start=1))
    columns = ["sleep", "date", "updates", "samples", "held-out accuracy before", "after", "weights"]
    note = "<p>Accuracies are those that each sleep measured, on the classes and held-out samples of that time.</p>"
    return note + sleep_plot(card.info.sleeps) + _table(columns, rows)


def _sleep_row(number: int, report: Mapping[str, Any]) -> str:
    before, after = (_share(report.get(name)) for name in ("accuracy_before", "accuracy_after"))
    samples = report.get("held_out")
    of = f' <span class="soft">of {samples:,}</span>' if isinstance(samples, int) and after is not None else ""
    used = "used" if report.get("used", True) else "kept, not used"
    cells = [
        escape(_date(report.get("made"))),
        _whole(report.get("updates")),
        _whole(report.get("samples")),
        _percent(before),
        f"{_percent(after)}{of}",
        used,
    ]
    return f'<tr><th scope="row">{number}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _memory(card: LearnerCard) -> str:
    info = card.info
    used = 100 * info.bytes.used / max(info.bytes.allowed, 1)
    bar = f'<div class="meter" aria-hidden="true"><i style="width:{min(used, 100):.1f}%"></i></div>'
    pairs = {
        "samples": f"{info.samples.stored:,} of {info.samples.capacity:,}",
        "budget": f"{info.bytes.used / 1e6:.2f} of {info.bytes.allowed / 1e6:.2f} MB",
        "a sample": f"{info.bytes.a_sample:,} bytes",
        "on disk": f"{info.bytes.on_disk / 1e6:.1f} MB with weights",
        "codec drift": _drift(card),
    }
    return bar + _pairs(pairs)


def _drift(card: LearnerCard) -> str:
    codec = card.info.codec
    if codec.error_lately is None:
        return "not measured yet"
    found = f"relative error {codec.error_lately:.3f} lately, {codec.relative_error:.3f} when it was fitted"
    return f"{found}: {'drifted, refit the codec' if codec.drifted else 'none'}"


def _settings(card: LearnerCard) -> dict[str, str]:
    network = card.info.backbone
    return {
        "network": f"{network.name}, cut after {network.cut} layers",
        "initial weights": network.weights.source,
        "input": f"images of {network.image_size} px" if network.features is None else f"vectors of {network.features}",
        "codec": card.info.codec.name,
        "head": card.info.head,
        "space of class means": network.space,
        "written by": f"siesta {__version__}",
    }


def _pairs(pairs: Mapping[str, str]) -> str:
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs.items())
    return f"<dl>{listed}</dl>"


def _table(columns: list[str], rows: str, kind: str = "") -> str:
    heads = "".join(f'<th scope="col" dir="auto"><span>{escape(name)}</span></th>' for name in columns)
    attribute = f' class="{kind}"' if kind else ""
    content = f"<table{attribute}><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    return f'<div class="scroll" tabindex="0">{content}</div>'


def _with_interval(accuracy: Accuracy) -> str:
    low, high = (100 * bound for bound in accuracy.interval or (0.0, 1.0))
    interval = f"95 % interval {low:.0f} to {high:.0f} %"
    return f"{_percent(accuracy.share)} of {accuracy.samples:,} ({interval})"


def _date(value: object) -> str:
    """Return a stored date and time, which is in UTC, to the minute."""
    return f"{str(value)[:16].replace('T', ' ')} UTC" if value else "-"


def _share(value: object) -> float | None:
    """Return an accuracy of a stored report, which no checksum covers."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _whole(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "-"
