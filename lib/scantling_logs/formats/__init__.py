"""Formats of logs, a module each or a family that prints alike: records of patterns where a step is
a line, functions where a file has a structure of its own."""

from ..file_format import FileFormat
from ..line_format import LineFormat
from .colossalai import COLOSSALAI
from .composer import COMPOSER
from .csv_metrics import CSV_METRICS
from .deepspeed import DEEPSPEED, DEEPSPEED_CHAT
from .huggingface import HF_TRAINER, LLAMA_FACTORY
from .internevo import INTERNEVO
from .json_series import JSON_SERIES
from .kineto import KINETO
from .levanter import LEVANTER
from .maxtext import MAXTEXT
from .megatron import GPT_NEOX, MEGATRON_BRIDGE, MEGATRON_DEEPSPEED, MEGATRON_LM, PRIMUS_MEGATRON
from .mlperf_mllog import MLPERF_MLLOG
from .nanogpt import LIT_GPT, LLM_C, MODDED_NANOGPT, NANOCHAT, NANOGPT
from .nanotron import NANOTRON
from .nccl_tests import NCCL_TESTS
from .nemo import DLLOGGER, NEMO, NEMO_RL
from .olmo_core import OLMO_CORE
from .progress_bar import PROGRESS_BAR
from .reinforcement import OPENRLHF, VERL
from .tensorboard import TENSORBOARD
from .torchtitan import TORCHTITAN
from .torchtune import TORCHTUNE

Format = LineFormat | FileFormat

# in the order in which they are tried: those with the surest marks first
FORMATS: tuple[Format, ...] = (
    TENSORBOARD,
    KINETO,
    JSON_SERIES,
    MLPERF_MLLOG,
    DLLOGGER,
    VERL,
    NEMO_RL,
    NEMO,
    COMPOSER,
    LLAMA_FACTORY,
    NANOTRON,
    OLMO_CORE,
    OPENRLHF,
    TORCHTUNE,
    INTERNEVO,
    LEVANTER,
    MAXTEXT,
    NANOCHAT,
    PRIMUS_MEGATRON,
    TORCHTITAN,
    MODDED_NANOGPT,
    MEGATRON_BRIDGE,
    GPT_NEOX,
    LLM_C,
    LIT_GPT,
    COLOSSALAI,
    MEGATRON_DEEPSPEED,
    MEGATRON_LM,
    DEEPSPEED_CHAT,
    DEEPSPEED,
    HF_TRAINER,
    NANOGPT,
    CSV_METRICS,  # before progress bars: in a table a progress bar is nothing
    PROGRESS_BAR,
    NCCL_TESTS,
)
