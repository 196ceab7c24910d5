"""python record_maxtext.py FOLDER: MaxText's model configurations of benchmarks/ below FOLDER, and
the files of src/maxtext/configs/gpu; a line of JSON each: name, model, chip, settings, flags."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import yaml

FILES = {  # module -> (chip, devices that its runs have where they do not say)
    "maxtext_trillium_model_configs": ("tpu-v6e", 256),
    "maxtext_v5e_model_configs": ("tpu-v5e", 256),
    "maxtext_v5p_model_configs": ("tpu-v5p", 64),
}


def flags(text: str) -> dict[str, str]:
    """Flags by name."""
    pairs = (word.lstrip("-").partition("=") for word in text.split())
    return {name: value for name, _, value in pairs if name}


def main(folder: str) -> None:
    root = Path(folder)
    sys.path.insert(0, str(root))
    globals_ = types.ModuleType("benchmarks.globals")
    globals_.__dict__["MAXTEXT_ASSETS_ROOT"] = "assets"
    sys.modules["benchmarks.globals"] = globals_
    from benchmarks.benchmark_utils import MaxTextModel

    for name, (chip, devices) in FILES.items():
        module = __import__(f"benchmarks.{name}", fromlist=[name])
        for model in vars(module).values():
            if isinstance(model, MaxTextModel):
                row = {
                    "recipe": model.model_name,
                    "model": model.model_type,
                    "chip": chip,
                    "devices": devices,
                    "settings": model.tuning_params,
                    "flags": flags(model.xla_flags),
                }
                print(json.dumps(row, default=str))
    for file in sorted((root / "src/maxtext/configs/gpu/models").glob("*.yml")):
        settings = yaml.safe_load(file.read_text())
        row = {
            "recipe": f"gpu/{file.stem}",
            "model": settings.pop("model_name"),
            "chip": "h100-sxm",
            "devices": 64,
            "settings": settings,
            "flags": {},
        }
        print(json.dumps(row, default=str))
    script = root / "src/maxtext/configs/gpu/a3/llama_3.1_405b/128vm.sh"
    if script.exists():
        text = script.read_text()
        line = text[text.index("export XLA_FLAGS=") :].split('"')[1]
        words = [w for w in text[text.index("python3 -m") :].replace("\\", " ").split() if "=" in w]
        given = {k: yaml.safe_load(v) for k, _, v in (word.partition("=") for word in words)}
        row = {
            "recipe": "gpu/a3 llama_3.1_405b 128vm",
            "model": given.pop("model_name"),
            "chip": "h100-sxm",
            "devices": 1024,
            "settings": given,
            "flags": flags(line),
        }
        print(json.dumps(row, default=str))


if __name__ == "__main__":
    main(sys.argv[1])
