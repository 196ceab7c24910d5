"""What another planner says of rows on A100-80: `python tests/bench/peers.py NAME FOLDER <
rows.json`.

Runs in the planner's own environment, so it needs nothing of this package. A row has devices, the
shape, the plan; answered is {id: tokens/s per device, or why not} and the seconds of all answers.
Each planner runs as it ships, at its own efficiencies; what a file of its lacks is said here.
"""

import contextlib
import io
import json
import logging
import signal
import sys
import time
from pathlib import Path

SECONDS = 10  # given to one row
RECOMPUTE = {"none": 0, "selective": 1, "full": 2}


def calculon(folder):
    """Calculon: a100_80g.json; tensor parallelism rides NVLink up to 8, else the network; its rule
    that a run has to fit is lifted, since every row ran."""
    from calculon import System
    from calculon.llm.llm import Llm

    system = json.loads((folder / "systems/a100_80g.json").read_text())
    system["mem1"]["GiB"] = 1e6
    logger = logging.getLogger("calculon")

    def rate(r):
        shape = dict(hidden=r["hidden"], feedforward=r["ffn_hidden"], seq_size=r["seq_len"])
        shape |= dict(attn_heads=r["heads"], attn_size=r["head_dim"], num_blocks=r["layers"])
        tp, pp, dp = r["tp"], r["pp"], r["dp"]
        inside = tp <= 8
        sp = bool(r["sp"]) and tp > 1
        run = dict(num_procs=tp * pp * dp, tensor_par=tp, pipeline_par=pp, data_par=dp)
        run |= dict(tensor_par_net=0 if inside else 1)
        run |= dict(pipeline_par_net=0 if tp * pp <= 8 else 1)
        run |= dict(data_par_net=0 if tp * pp * dp <= 8 else 1)
        run |= dict(batch_size=r["batch"], microbatch_size=r["micro_batch"], datatype="float16")
        run |= dict(fused_activation=True, attention_type="multihead", training=True)
        run["activation_recompute"] = ("none", "attn_only", "full")[RECOMPUTE[r["recompute"]]]
        run["pipeline_interleaving"] = r["vpp"] if pp > 1 else 1
        run["optimizer_sharding"] = r["sharding"] != "none" and dp > 1
        run |= dict(tensor_par_comm_type="rs_ag" if sp else "ar", tensor_par_overlap="none")
        run |= dict(seq_par_ag_redo=sp and r["recompute"] != "full", data_par_overlap=False)
        run |= dict(weight_offload=False, activations_offload=False, optimizer_offload=False)
        system["networks"][0]["must_be_filled"] = False
        model = Llm(Llm.Application(shape), logger)
        made = System(system)
        model.compile(made, Llm.Execution.from_json(run))
        model.run(made)
        return r["batch"] * r["seq_len"] / model.get_total_time() / run["num_procs"]

    return rate


def llm_analysis(folder):
    """llm-analysis of the package index: a100-sxm-80gb, half of the peak, what it advises."""
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import ModelConfig, ParallelismConfig, get_gpu_config_by_name

    gpu = get_gpu_config_by_name("a100-sxm-80gb")
    zero = {"zero1": 1, "zero2": 2, "zero3": 3, "hsdp": 3}

    def rate(r):
        model = ModelConfig(
            "row",
            r["layers"],
            r["heads"],
            r["hidden"],
            r["vocab"],
            max_seq_len=r["seq_len"],
            num_key_value_heads=r["kv_heads"],
            ffn_embed_dim=r["ffn_hidden"],
        )
        split = ParallelismConfig(tp_size=r["tp"], pp_size=r["pp"], dp_size=r["dp"])
        said = LLMAnalysis(model, gpu, parallelism_config=split, flops_efficiency=0.5).training(
            batch_size_per_gpu=r["micro_batch"],
            global_batch_size=r["batch"],
            seq_len=r["seq_len"],
            total_num_tokens=r["batch"] * r["seq_len"],
            activation_recomputation=ActivationRecomputation(RECOMPUTE[r["recompute"]]),
            ds_zero=DSZeRO(zero.get(r["sharding"], 0)),
            mlp_gated_linear_units=r["gated"],
        )
        devices = r["tp"] * r["pp"] * r["dp"]
        return r["batch"] * r["seq_len"] / said["latency_per_iter"] / devices

    return rate


def simumax(folder):
    """SimuMax: the device of its a100_pcie file, the networks of its B200 file at 300 GB/s inside a
    node and 25 GB/s a device between nodes."""
    from simumax.core.config import ModelConfig, StrategyConfig, SystemConfig
    from simumax.core.perf_llm import PerfLLM

    read = lambda name: json.loads((folder / f"configs/system/{name}.json").read_text())  # noqa: E731
    system, fast = read("a100_pcie"), read("b200_bf16_ceperm")["networks"]
    for name, rate_gb in (("low_intra_node", 300), ("high_intra_node", 300), ("inter_node", 200)):
        fast[name]["bandwidth"]["gbps"] = rate_gb
    system["networks"] = fast
    file = Path("simumax-a100.json").absolute()
    file.write_text(json.dumps(system))

    def rate(r):
        shape = dict(model_type="dense", model_name="row", hidden_size=r["hidden"])
        shape |= dict(head_num=r["heads"], kv_head_num=r["kv_heads"], head_size=r["head_dim"])
        shape |= dict(intermediate_size=r["ffn_hidden"], layer_num=r["layers"])
        shape |= dict(vocab_size=r["vocab"], use_swiglu=r["gated"])
        if r["sharding"] in ("zero2", "zero3", "hsdp"):
            raise ValueError("it has zero 0 and 1 alone")
        accumulated = r["batch"] // (r["dp"] * r["micro_batch"])
        full = r["recompute"] == "full"
        plan = dict(seq_len=r["seq_len"], micro_batch_size=r["micro_batch"], tp_size=r["tp"])
        plan |= dict(micro_batch_num=accumulated, pp_size=r["pp"], interleaving_size=r["vpp"])
        plan |= dict(world_size=r["tp"] * r["pp"] * r["dp"], enable_recompute=full)
        plan |= dict(enable_sequence_parallel=bool(r["sp"]) and r["tp"] > 1)
        plan |= dict(zero_state=int(r["sharding"] == "zero1"), use_fp32_accum_grad=True)
        if r["vpp"] > 1:
            plan["pp_comm_async"] = False  # its timing of virtual stages knows no other
        if full:
            plan |= dict(
                recompute_granularity="full_block", recompute_layer_num=-(-r["layers"] // r["pp"])
            )
        paths = []
        for name, data in (("strategy", plan), ("model", shape)):
            kept = Path(f"simumax-{name}.json").absolute()
            kept.write_text(json.dumps(data))
            paths.append(str(kept))
        perf = PerfLLM()
        perf.configure(
            strategy_config=StrategyConfig.init_from_config_file(paths[0]),
            model_config=ModelConfig.init_from_config_file(paths[1]),
            system_config=SystemConfig.init_from_config_file(str(file)),
        )
        perf.run_estimate()
        took = str(perf.analysis_cost().data["duration_time_per_iter"]).split()
        seconds = float(took[0]) * {"ms": 1e-3, "s": 1.0}[took[1] if len(took) > 1 else "ms"]
        return r["batch"] * r["seq_len"] / seconds / plan["world_size"]

    return rate


PEERS = {"calculon": calculon, "simumax": simumax, "llm-analysis": llm_analysis}


def late(*_):
    raise TimeoutError(f"no answer within {SECONDS} s")


def main(name, folder):
    folder, rows, said = Path(folder).absolute(), json.load(sys.stdin), {}
    sys.path.insert(0, str(folder))
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, late)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        rate = PEERS[name](folder)
        start = time.process_time()
        for row in rows:
            signal.alarm(SECONDS)
            try:
                said[row["id"]] = float(rate(row))
            except Exception as e:  # whatever another planner raises: no answer
                said[row["id"]] = f"{type(e).__name__}: {str(e)[:80]}"
            signal.alarm(0)
        took = time.process_time() - start
    json.dump({"said": said, "seconds": took}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
