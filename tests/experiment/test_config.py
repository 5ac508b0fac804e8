"""Configs: values, selection, changes, identities and the errors of invalid files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from siesta.errors import BadInput
from siesta.experiment import load_config
from siesta.methods.remind import RemindSettings
from tests.experiment.conftest import WriteConfig

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("**/*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_config_of_the_package_is_valid_and_its_header_is_its_command(path: Path) -> None:
    assert load_config(path).methods
    name = path.relative_to(ROOT / "configs")
    command = f"siesta reproduce {path.stem}" if name.parts[0] == "paper" else f"siesta run configs/{name}"
    assert command in path.read_text("utf-8").split("\nname = ")[0]


def test_a_config_has_the_values_of_its_file(write_config: WriteConfig) -> None:
    config = load_config(write_config())
    assert (config.name, config.seeds, config.data.image_size) == ("toy", (0,), 32)
    assert [method.name for method in config.methods] == ["siesta", "remind", "ncm"]
    settings = config.methods[1].settings
    assert isinstance(settings, RemindSettings)
    assert (settings.rehearsals, settings.lr) == (2, 0.01)
    assert config.orders[0].options == {"classes_per_step": 2}


def test_parts_can_be_selected_and_keys_set(write_config: WriteConfig) -> None:
    config = load_config(
        write_config(),
        ["data.image_size=64", "data.path=elsewhere", "methods.siesta.policy=grasp", "network.space=plain"],
        methods=["siesta"],
        orders=["iid"],
        seeds=[3, 4],
    )
    assert (config.data.image_size, config.data.path, config.network.space) == (64, "elsewhere", "plain")
    assert config.seeds == (3, 4)
    assert [order.name for order in config.orders] == ["iid"]
    assert config.methods[0].settings.model_dump()["policy"] == "grasp"


def test_a_method_may_be_listed_twice_under_different_names(write_config: WriteConfig) -> None:
    path = write_config("[methods.ncm]", '[methods.long]\nkind = "siesta"\nupdates = 99\nsamples = 7')
    long = load_config(path).methods[-1]
    assert (long.name, long.kind, long.samples, long.settings.model_dump()["updates"]) == ("long", "siesta", 7, 99)


def test_a_method_may_change_keys_of_network_and_base(write_config: WriteConfig) -> None:
    text = (
        '[base]\nepochs = 3\nrate = 0.2\n[methods.deep]\nkind = "siesta"\nnetwork = { cut = 5 }\nbase = { rate = 0.1 }'
    )
    config = load_config(write_config("[methods.ncm]", text))
    siesta, _, deep = config.methods
    assert (siesta.network, siesta.base) == (config.network, config.base)
    assert deep.network == config.network.model_copy(update={"cut": 5})
    assert deep.base is not None and (deep.base.epochs, deep.base.lr) == (3, 0.1)
    assert config.identity(config.orders[0], deep, 0) != config.identity(config.orders[0], siesta, 0)


def test_a_method_may_go_without_base_initialisation(write_config: WriteConfig) -> None:
    text = "classes_per_step = 2\nbase_classes = 2\n\n[base]\nepochs = 3\n"
    path = write_config("classes_per_step = 2", text)
    path.write_text(path.read_text("utf-8").replace("[methods.ncm]", "[methods.ncm]\nbase = false"), "utf-8")
    bases = {method.name: method.base for method in load_config(path).methods}
    assert bases.pop("ncm") is None and all(base is not None and base.epochs == 3 for base in bases.values())


def test_references_to_published_rows_are_kept(write_config: WriteConfig) -> None:
    text = """
[methods.ncm]
[published.iid]
siesta = ["text:iid", "SIESTA"]
ncm = ["tab:no_aug", "DER"]
"""
    path = write_config("[methods.ncm]", text)
    config = load_config(path, ['shows=["tab:no_aug", "fig:online"]'], methods=["ncm"])
    assert config.shows == ("tab:no_aug", "fig:online")
    assert config.published == {"iid": {"siesta": ("text:iid", "SIESTA"), "ncm": ("tab:no_aug", "DER")}}


WRONG = [
    ("updates = 16", "network = { cuts = 5 }", "no key 'methods.siesta.network.cuts': did you mean 'cut'"),
    ("updates = 16", "network = 5", "methods.siesta: network must be a table of keys, not 5"),
    (
        "updates = 16",
        "base = { epochs = 1 }",
        r"methods.siesta: base changes keys of a section .* add \[base\]",
    ),
    ('name = "toy"', 'name = "toy"\nshows = ["tab:none"]', "shows: the paper has no 'tab:none'"),
    ("[methods.ncm]", "[methods.ncm]\n[published.up]", "published.up: the config has no such order"),
    (
        "[methods.ncm]",
        '[methods.ncm]\n[published.iid]\nder = ["tab:no_aug", "DER"]',
        "has no such method",
    ),
    ("[methods.ncm]", '[methods.ncm]\n[published.iid]\nncm = ["tab:no_aug", "NCM"]', "no row 'NCM' in 'tab:no_aug'"),
    ("image_size = 32", "image_sise = 32", "no key 'data.image_sise': did you mean 'image_size'"),
    ("image_size = 32", "image_size = 8", "data.image_size must be 32 or more, not 8"),
    ("image_size = 32", 'image_size = "big"', "data.image_size must be a whole number, not 'big'"),
    ("image_size = 32", "image_size = 32.0", "data.image_size must be a whole number, not 32.0"),
    ("image_size = 32", "image_size = 32\nheld_out = nan", "data.held_out must be a finite number, not nan"),
    ('dataset = "image_folder"', "dataset = 5", "data.dataset must be text in quotes, not 5"),
    ('dataset = "image_folder"', 'dataset = "imagefolder"', "no dataset 'imagefolder'.*image_folder"),
    ('dataset = "image_folder"', "", "'data.dataset' is missing"),
    ("updates = 16", "updates = -1", "methods.siesta.updates must be 0 or more, not -1"),
    ("updates = 16", "updates = true", "methods.siesta.updates must be a whole number, not True"),
    ("updates = 16", "lr = 0", "methods.siesta.lr must be more than 0, not 0"),
    ("updates = 16", "update = 16", "no key 'methods.siesta.update': did you mean 'updates'"),
    ("updates = 16", 'policy = "best"', "methods.siesta.policy: .*no policy 'best'"),
    ("updates = 16", 'augment = "blur"', "methods.siesta.augment: .*no augmentation 'blur'"),
    ("updates = 16", "samples = 0", "methods.siesta.samples.*not 0"),
    ("[methods.ncm]", "[methods.ncmm]", "methods.ncmm: there is no method 'ncmm'.*ncm"),
    ("classes_per_step = 2", "", "orders.class_incremental: .*needs the option 'classes_per_step'"),
    ("classes_per_step = 2", "classes = 2", "orders.class_incremental: .*no option 'classes'"),
    ("[orders.iid]", "[orders.random]", "orders.random: there is no order 'random'"),
    ('name = "toy"', "name = toy", "is not TOML"),
    ('name = "toy"', 'name = "toy"\nseeds = []', "seeds: .*at least 1"),
    ('name = "toy"', 'name = "../toy"', "name: .*pattern"),
    ("[methods.ncm]", '[methods."../ncm"]', "methods: '../ncm' is not a valid name"),
    ("[orders.iid]", '[orders."i-id"]', "orders: 'i-id' is not a valid name"),
    ('name = "toy"', 'name = "toy"\nseeds = [true]', "seeds.0 must be a whole number, not True"),
    ('name = "toy"', 'name = "toy"\nseeds = [-1]', "seeds.0 must be 0 or more, not -1"),
]


@pytest.mark.parametrize(("old", "new", "words"), WRONG, ids=[words for *_, words in WRONG])
def test_an_invalid_config_is_refused_in_one_sentence(
    write_config: WriteConfig, old: str, new: str, words: str
) -> None:
    path = write_config(old, new)
    with pytest.raises(BadInput, match=words) as caught:
        load_config(path)
    assert re.match(rf"{re.escape(str(path))}\b", str(caught.value))
    assert "\n" not in str(caught.value)


def test_unknown_names_and_keys_are_refused(write_config: WriteConfig, tmp_path: Path) -> None:
    path = write_config()
    for arguments, words in (
        ({"methods": ["siesta", "remid"]}, "no method 'remid'.*siesta, remind, ncm"),
        ({"orders": ["ascending"]}, "no order 'ascending'"),
        ({"changes": ["data.image_size"]}, "write it like"),
        ({"changes": ["name.first=x"]}, "name is a value"),
        ({"changes": ["data.colour=red"]}, "no key 'data.colour'"),
    ):
        with pytest.raises(BadInput, match=words):
            load_config(path, **arguments)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no config at"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="cannot be read"):
        load_config(tmp_path)


def test_the_identity_of_a_run_is_what_its_results_depend_on(write_config: WriteConfig) -> None:
    path = write_config()

    def identity(*changes: str, seed: int = 0) -> str:
        config = load_config(path, changes)
        return config.identity(config.orders[0], config.methods[0], seed)

    assert identity() == identity("data.path=moved") == identity("methods.remind.rehearsals=9") == identity("seeds=[5]")
    others = [
        "data.image_size=64",
        "methods.siesta.updates=17",
        "network.space=plain",
        "data.held_out=0.5",
        "samples=9",
    ]
    assert len({identity(), identity(seed=1), *(identity(change) for change in others)}) == 2 + len(others)


def test_the_command_has_no_absolute_paths(write_config: WriteConfig) -> None:
    changes = ["data.path=somewhere", "network.weights=/home/me/net.pt", "samples=7", "data.options={classes = 3}"]
    assert load_config(write_config()).command == "siesta run toy.toml"
    config = load_config(write_config(), changes)
    words = "siesta run toy.toml --set network.weights=net.pt --set samples=7 --set 'data.options={classes = 3}'"
    assert config.command == words
