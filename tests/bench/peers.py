"""What another planner says of rows on A100-80 and H100: `python tests/bench/peers.py NAME FOLDER <
rows.json`.

Runs in the planner's own environment, so it needs nothing of this package. A row has devices, the
shape, the plan; answered is {id: tokens/s per device, or why not} and the seconds of processor time
of all answers. Each planner runs as it ships, at its own efficiencies; what a file of its lacks is
said here.
"""

import contextlib
import io
import json
import logging
import signal
import sys
import time
from pathlib import Path

SECONDS = 60  # of processor time given to one row
A100, H100 = "a100-80-sxm", "h100-sxm"
RECOMPUTE = {"none": 0, "selective": 1, "full": 2}


def calculon(folder):
    """Calculon: a100_80g.json and h100_80g_nvl8.json; tensor parallelism rides NVLink up to 8, else
    the network; its rule that a run has to fit is lifted, since every row ran. It has MLPs of two
    matrices: a gated one is one of two that are 1.5 times as wide, which has the same products and
    parameters. It has no experts."""
    from calculon import System
    from calculon.llm.llm import Llm

    systems = {A100: "a100_80g", H100: "h100_80g_nvl8"}
    made = {}
    for chip, name in systems.items():
        system = json.loads((folder / f"systems/{name}.json").read_text())
        system["mem1"]["GiB"] = 1e6
        for network in system["networks"]:
            network["must_be_filled"] = False
        made[chip] = system
    logger = logging.getLogger("calculon")

    def rate(r):
        if r["experts"]:
            raise ValueError("it has no experts")
        wide = r["ffn_hidden"] * 3 // 2 if r["gated"] else r["ffn_hidden"]
        shape = dict(hidden=r["hidden"], feedforward=wide, seq_size=r["seq_len"])
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
        model = Llm(Llm.Application(shape), logger)
        system = System(made[r["chip"]])
        model.compile(system, Llm.Execution.from_json(run))
        model.run(system)
        return r["batch"] * r["seq_len"] / model.get_total_time() / run["num_procs"]

    return rate


def llm_analysis(folder):
    """llm-analysis of the package index or of a folder: a100-sxm-80gb and h100-sxm-80gb, half of
    the peak, what it advises. Whether an MLP is gated is asked by `training` in the release and by
    the model in the repository."""
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import ModelConfig, ParallelismConfig, get_gpu_config_by_name

    of_model = "mlp_gated_linear_units" in ModelConfig.__dataclass_fields__
    gpus = {A100: "a100-sxm-80gb", H100: "h100-sxm-80gb"}
    zero = {"zero1": 1, "zero2": 2, "zero3": 3, "hsdp": 3}

    def rate(r):
        gated = dict(mlp_gated_linear_units=r["gated"])
        more = dict(gated) if of_model else {}
        if r["experts"]:
            more |= dict(moe_num_experts=r["experts"], moe_top_k=r["top_k"])
        model = ModelConfig(
            "row",
            r["layers"],
            r["heads"],
            r["hidden"],
            r["vocab"],
            max_seq_len=r["seq_len"],
            num_key_value_heads=r["kv_heads"],
            ffn_embed_dim=r["expert_ffn_hidden"] if r["experts"] else r["ffn_hidden"],
            **more,
        )
        split = ParallelismConfig(
            tp_size=r["tp"], pp_size=r["pp"], dp_size=r["dp"], ep_size=r["ep"]
        )
        gpu = get_gpu_config_by_name(gpus[r["chip"]])
        said = LLMAnalysis(model, gpu, parallelism_config=split, flops_efficiency=0.5).training(
            batch_size_per_gpu=r["micro_batch"],
            global_batch_size=r["batch"],
            seq_len=r["seq_len"],
            total_num_tokens=r["batch"] * r["seq_len"],
            activation_recomputation=ActivationRecomputation(RECOMPUTE[r["recompute"]]),
            ds_zero=DSZeRO(zero.get(r["sharding"], 0)),
            **({} if of_model else gated),
        )
        devices = r["tp"] * r["pp"] * r["dp"]
        return r["batch"] * r["seq_len"] / said["latency_per_iter"] / devices

    return rate


def simumax(folder):
    """SimuMax: on A100 the device of its a100_pcie file, on H100 the same with H100's peaks and
    memory (no file of its own is published, none of its measured products holds), the networks of
    its B200 file at the rates inside a node and 25 or 50 GB/s a device between nodes."""
    from simumax.core.config import ModelConfig, StrategyConfig, SystemConfig
    from simumax.core.perf_llm import PerfLLM

    read = lambda name: json.loads((folder / f"configs/system/{name}.json").read_text())  # noqa: E731
    files = {}
    for chip, inside, between in ((A100, 300, 200), (H100, 450, 400)):
        system, fast = read("a100_pcie"), read("b200_bf16_ceperm")["networks"]
        for name in ("low_intra_node", "high_intra_node"):
            fast[name]["bandwidth"]["gbps"] = inside
        fast["inter_node"]["bandwidth"]["gbps"] = between
        system["networks"] = fast
        if chip == H100:
            for operation in system["accelerator"]["op"].values():
                operation["tflops"] *= 989 / 312
                operation["accurate_efficient_factor"] = {}
            for memory in system["accelerator"]["bandwidth"].values():
                memory["gbps"] = memory["gbps"] * 3350 / 2039
        file = Path(f"simumax-{chip}.json").absolute()
        file.write_text(json.dumps(system))
        files[chip] = str(file)

    def rate(r):
        shape = dict(model_type="dense", model_name="row", hidden_size=r["hidden"])
        shape |= dict(head_num=r["heads"], kv_head_num=r["kv_heads"], head_size=r["head_dim"])
        shape |= dict(intermediate_size=r["ffn_hidden"], layer_num=r["layers"])
        shape |= dict(vocab_size=r["vocab"], use_swiglu=r["gated"])
        if r["experts"]:
            shape |= dict(model_type="moe", expert_num=r["experts"], topk=r["top_k"])
            shape |= dict(moe_ffn_hidden_size=r["expert_ffn_hidden"])
        accumulated = r["batch"] // (r["dp"] * r["micro_batch"])
        full = r["recompute"] == "full"
        plan = dict(seq_len=r["seq_len"], micro_batch_size=r["micro_batch"], tp_size=r["tp"])
        plan |= dict(micro_batch_num=accumulated, pp_size=r["pp"], interleaving_size=r["vpp"])
        plan |= dict(world_size=r["tp"] * r["pp"] * r["dp"], enable_recompute=full)
        plan |= dict(enable_sequence_parallel=bool(r["sp"]) and r["tp"] > 1)
        plan |= dict(zero_state=int(r["sharding"] == "zero1"), use_fp32_accum_grad=True)
        if r["experts"]:
            plan |= dict(ep_size=r["ep"], etp_size=1)
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
            system_config=SystemConfig.init_from_config_file(files[r["chip"]]),
        )
        perf.run_estimate()
        took = str(perf.analysis_cost().data["duration_time_per_iter"]).split()
        seconds = float(took[0]) * {"ms": 1e-3, "s": 1.0}[took[1] if len(took) > 1 else "ms"]
        return r["batch"] * r["seq_len"] / seconds / plan["world_size"]

    return rate


PEERS = {
    "calculon": calculon,
    "simumax": simumax,
    "llm-analysis": llm_analysis,
    "llm-analysis (repository)": llm_analysis,
}


def late(*_):
    raise TimeoutError(f"no answer within {SECONDS} s")


def main(name, folder):
    folder, rows, said = Path(folder).absolute(), json.load(sys.stdin), {}
    if name != "llm-analysis":  # which is of the package index, whatever its folder
        sys.path.insert(0, str(folder))
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, late)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        rate = PEERS[name](folder)
        start = time.process_time()
        for row in rows:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                said[row["id"]] = float(rate(row))
            except Exception as e:  # whatever another planner raises: no answer
                said[row["id"]] = f"{type(e).__name__}: {str(e)[:80]}"
            signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.process_time() - start
    json.dump({"said": said, "seconds": took}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
