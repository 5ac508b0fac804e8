"""Inheritance between config files, keys of version 0.1, and changes by --set."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.experiment.config_file import read_values, set_key

BELOW = """
name = "below"
seeds = [1, 2]
shows = ["tab:cub"]
[data]
dataset = "cub200"
path = "birds"
[network]
cut = 8
[methods.siesta]
updates = 5
[methods.ncm]
[published.iid]
ncm = ["text:online", "NCM"]
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_data_network_and_base_are_merged_by_key_and_other_tables_replaced(tmp_path: Path) -> None:
    write(tmp_path / "below.toml", BELOW)
    above = 'extends = "below.toml"\nname = "above"\n[data]\npath = "wings"\n[base]\nepochs = 2\n[methods.remind]\n'
    assert read_values(write(tmp_path / "above.toml", above)) == {
        "name": "above",
        "seeds": [1, 2],
        "data": {"dataset": "cub200", "path": "wings"},
        "network": {"cut": 8},
        "base": {"epochs": 2},
        "methods": {"remind": {}},  # neither siesta nor ncm; and what `below` is compared with is not inherited
    }


def test_a_file_may_extend_one_that_extends_another(tmp_path: Path) -> None:
    write(tmp_path / "below.toml", BELOW)
    write(tmp_path / "middle.toml", 'extends = "below.toml"\n[network]\ncut = 5\nspace = "plain"\n')
    top = write(tmp_path / "top.toml", 'extends = "middle.toml"\n[network]\ncut = 3\n')
    assert read_values(top)["network"] == {"cut": 3, "space": "plain"}
    assert read_values(top)["methods"] == {"siesta": {"updates": 5}, "ncm": {}}


def test_a_file_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text(f"a = {'[' * 100_000}")
    with pytest.raises(BadInput, match=r"deep\.toml is not TOML"):
        read_values(tmp_path / "deep.toml")
    values: dict[str, object] = {}
    set_key(values, f"a={'[' * 100_000}")
    assert values == {"a": "[" * 100_000}, "text, as any other value that is not TOML"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('extends = "a.toml"', r"a\.toml extends itself"),
        ('extends = "b.toml"', r"a\.toml extends itself"),
        ('extends = "none.toml"', r"no config at .*none\.toml"),
        ("extends = 3", "extends must be the name of a file, not 3"),
    ],
)
def test_an_invalid_extends_is_refused(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path / "b.toml", 'extends = "a.toml"')
    with pytest.raises(BadInput, match=words):
        read_values(write(tmp_path / "a.toml", text))
