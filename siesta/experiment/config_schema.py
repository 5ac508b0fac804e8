"""The schema of an experiment's TOML file: pydantic models that refuse unknown keys."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from siesta.backbones import DEFAULT_BACKBONE, MAX_IMAGE_SIZE, MIN_IMAGE_SIZE, PUBLISHED

__all__ = ["BaseConfig", "ConfigFile", "ConfigSection", "DataConfig", "InitialStateConfig", "NetworkConfig"]


class ConfigSection(BaseModel):
    """A table of the file: strictly typed, immutable and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DataConfig(ConfigSection):
    """The data set and the size of its images.

    Attributes:
        dataset: A name from `DATASETS`.
        path: Folder or file of the data set.
        options: Further options of its reader.
        image_size: Side of the square that images are resized to.
        held_out: Share of the training images that replaces the test set, for hyperparameter searches; 0 uses the
            real test set.
        held_out_seed: Seed that chooses these images.
    """

    dataset: str
    path: str
    options: dict[str, Any] = {}
    image_size: Annotated[int, Field(ge=MIN_IMAGE_SIZE, le=MAX_IMAGE_SIZE)] = 224
    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.0
    held_out_seed: Annotated[int, Field(ge=0)] = 0


class NetworkConfig(ConfigSection):
    """The network that every method starts from.

    Attributes:
        backbone: A name from `BACKBONES`.
        cut: Number of layers below the cut; the backbone's default when None.
        weights: "published", "random" or a file.
        space: The feature space that class means live in.
        codec_pictures: Folder of images to fit the codec on; the codec of the package when None.
        codec_options: Options of the codec; dumps leave them out where there are none, and recorded runs keep their
            hashes.
    """

    backbone: str = DEFAULT_BACKBONE
    cut: int | None = None
    weights: str = PUBLISHED
    space: str = "centred"
    codec_pictures: str | None = None
    codec_options: dict[str, Any] = {}

    @model_serializer(mode="wrap")
    def _dump(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        return {name: value for name, value in values.items() if name != "codec_options" or value}


class BaseConfig(ConfigSection):
    """Base initialisation on the first step: the codec, then supervised training of top and head; see `train_base`."""

    epochs: Annotated[int, Field(ge=1)] = 50
    batch_size: Annotated[int, Field(ge=1)] = 64
    lr: Annotated[float | None, Field(gt=0, serialization_alias="rate")] = None
    mean_share: Annotated[float, Field(ge=0, le=1)] = 0.5


class InitialStateConfig(ConfigSection):
    """The network of a method and its base initialisation, after the method's own keys are applied."""

    network: NetworkConfig
    base: BaseConfig | None


class ConfigFile(ConfigSection):
    """The whole file; the entries of `orders` and `methods` are validated by their kind.

    Attributes:
        name: Name of the experiment.
        seeds: Every combination of order and method runs once for each of these.
        samples: Number of samples that a method may store; all of them when None.
        data: See `DataConfig`.
        network: See `NetworkConfig`.
        base: See `BaseConfig`; no base initialisation when None.
        orders: Options of each order by its name in the config.
        methods: Settings of each method by its name in the config.
        shows: Tables and figures of the paper that the experiment reproduces.
        published: By order and method, the table and row of the paper that the results are compared with.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(min_length=1, strict=False)] = (0,)
    samples: Annotated[int, Field(ge=1)] | None = None
    data: DataConfig
    network: NetworkConfig = NetworkConfig()
    base: BaseConfig | None = None
    orders: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    methods: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    shows: Annotated[tuple[str, ...], Field(strict=False)] = ()
    published: dict[str, dict[str, Annotated[tuple[str, str], Field(strict=False)]]] = {}
