"""Step lines as releases and forks of the frameworks format them: what differs is the spacing, the
separator, the unit, who counts, what is left out. Each text is written as the format string of the
release does; the figures are those that stand in it."""

import json

import pytest
import scantling as sc
from dirt import tried

STEPS = range(1, 31)


def told(line: str, head: str = "", **more) -> str:
    """A line of each step behind a head; {i} is its number, {clock} a time of four seconds a step,
    {n} and {tokens} what is consumed by then."""
    rows = (
        line.format(
            i=i,
            before=i - 1,
            n=512 * i,
            tokens=512 * 4096 * i,
            clock=f"10:{i * 4 // 60:02d}:{i * 4 % 60:02d}",
            **more,
        )
        for i in STEPS
    )
    return head + "\n".join(rows) + "\n"


NINE = {"step_s": 9.0}
RELEASES = {
    # Megatron-LM, pretrain_gpt.py of 2019: no colon, no samples
    "megatron 2019": (
        "megatron_lm",
        told(
            " iteration {i:8d}/  500000 | elapsed time per iteration (ms): 9000.0 | "
            "learning rate 1.500E-04 | lm loss 7.3E+00 | loss scale 65536.0 |"
        ),
        NINE,
    ),
    # Megatron-LM core 0.14: microseconds in the stamp, energy, skipped samples
    "megatron 2025": (
        "megatron_lm",
        told(
            " [2025-12-22 {clock}.123456] iteration {i:8d}/  500000 | consumed samples: {n:12d} | "
            "skipped samples:            0 | elapsed time per iteration (ms): 9000.0 | throughput "
            "per GPU (TFLOP/s/GPU): 400.5 | energy per GPU (J/iter/GPU): 5000.0 | power per GPU "
            "(W/GPU): 600.0 | learning rate: 3.000000E-05 | global batch size:   512 |"
        ),
        NINE | {"tflops_per_device": 400.5, "global_batch": 512},
    ),
    "megatron, a run without end": (
        "megatron_lm",
        told(" iteration {i:8d}/infinity | elapsed time per iteration (ms): 9000.0 |"),
        NINE,
    ),
    # training.py of Primus: the figure of the step and the mean of those before
    "primus": (
        "primus_megatron",
        told(
            "[0;32m[20251010 {clock}][rank-7/8][INFO ] [--trainer.py:1] : iteration {i:8d}/      "
            "50 | consumed samples: {n:12d} | elapsed time per iteration (ms): 9000.0/9020.5 | hip "
            "mem usage/free/total/usage_ratio: 171.50GB/16.2GB/191.98GB/91.54% | throughput per "
            "GPU (TFLOP/s/GPU): 400.0/398.7 | tokens per GPU (tokens/s/GPU): 14563.6/14530.1 | "
            "global batch size:   512 |"
        ),
        NINE | {"tokens_per_s_per_device": 14_563.6, "peak_memory_gb": 171.5},
    ),
    "gpt-neox": (
        "gpt_neox",
        told(
            " samples/sec: 56.889 | iteration {i:8d}/  320000 | elapsed time per iteration (ms): "
            "9000.0 | learning rate: 6.0E-05 | approx flops per GPU: 55.3TFLOPS | lm_loss: 1.0E+01"
        ),
        NINE | {"tflops_per_device": 55.3, "global_batch": 512},
    ),
    # training.py of microsoft/Megatron-DeepSpeed 2023
    "megatron-deepspeed 2023": (
        "megatron_deepspeed",
        told(
            " iteration {i:8d}/  317892 | consumed samples: {n:12d} | consumed tokens: "
            "{tokens:12d} | elapsed time per iteration (ms): 9000.0 | learning rate: 2.4E-04 | "
            "global batch size:   512 | lm loss: 5.9E+00 | actual seqlen:  4096 | samples per "
            "second: 56.889 | tokens per gpu per second (tgs): 1146.733 | TFLOPs: 69.85 |",
            head="using world size: 8 [DeepSpeed]\n",
        ),
        NINE | {"tokens_per_s_per_device": 1146.733, "tflops_per_device": 69.85, "seq_len": 4096},
    ),
    # megatron/training_log.py of argonne-lcf/Megatron-DeepSpeed: name=value
    "megatron-deepspeed, name=value": (
        "megatron_deepspeed",
        told(
            "[2024-09-16 {clock}.287338][INFO][training_log:661] -  iteration={i:8d}/  635782 | "
            "consumed_samples={n:12d} | consumed_tokens={tokens:12d} | "
            "elapsed_time_per_iteration_ms=9000.0 | learning_rate=9.4372e-09 | "
            "global_batch_size=  512 | lm loss=11.167250 | actual_seqlen= 4096 | "
            "samples_per_second=56.889 | tokens_per_gpu_per_second_tgs=4432.597 | "
            "[LM]TFLOPs=20.30 | [DS]TFLOPs=26.18 |"
        ),
        NINE
        | {
            "tokens_per_s_per_device": 4432.597,
            "tflops_per_device": 20.3,
            "global_batch": 512,
            "seq_len": 4096,
        },
    ),
    # nemo/lightning/pytorch/callbacks/progress_printer.py: `|` between, bytes of memory
    "nemo 2": (
        "nemo",
        told(
            "[default0]:Training epoch 0, iteration {before}/99 | lr: 6.897e-06 | "
            "global_batch_size: 128 | global_step: {before} | max_memory_reserved: 127785762816 | "
            "max_memory_allocated: 115792977920 | reduced_train_loss: 11.96 | train_step_timing in "
            "s: 9.0 | TFLOPS_per_GPU: 1.249e+03 | consumed_samples: {n}"
        ),
        NINE
        | {
            "tflops_per_device": 1249.0,
            "global_batch": 128,
            "peak_memory_gb": 115_792_977_920 / 2**30,
        },
    ),
    "nemo 2, its second epoch": (
        "nemo",
        told(
            "2025-10-17T{clock}+08:00] Training epoch 1, iteration 7/9 | lr: 0.000175 | "
            "global_batch_size: 32 | global_step: {i} | reduced_train_loss: 2.792 | "
            "train_step_timing in s: 9.0 | tokens_per_sec_per_gpu: 6.859e+03"
        ),
        NINE | {"tokens_per_s_per_device": 6859.0, "global_batch": 32},
    ),
    "nemo 1, its bar": (
        "nemo",
        "[NeMo I 2024-02-23 10:00:00 exp_manager:389] Experiments will be logged at /x\n"
        + "\r".join(
            f"Epoch 0: :   1%|  | {i}/500 [00:{i:02d}<1:00:00, v_num=0, reduced_train_loss=10.9, "
            f"global_step={i - 1:.1f}, consumed_samples={512.0 * i}, train_step_timing in s=9.000]"
            for i in STEPS
        ),
        NINE,
    ),
    # metric_logger.py of MaxText, with and without what later releases add
    "maxtext 2024": (
        "maxtext",
        told("completed step: {i}, seconds: 9.000, TFLOP/s/device: 157.700, loss: 10.8"),
        NINE | {"tflops_per_device": 157.7},
    ),
    "maxtext 2025": (
        "maxtext",
        told(
            "I0926 {clock}.1 12 metric_logger.py:100] completed step: {i}, seconds: 9.000, "
            "TFLOP/s/device: 1157.700, Tokens/s/device: 14563.556, total_weights: 2097152, loss: "
            "10.877, lr: 3.000e-05, grad_norm: 1.0"
        ),
        NINE | {"tflops_per_device": 1157.7, "tokens_per_s_per_device": 14_563.556},
    ),
    # components/metrics.py of torchtitan: wps before tps, a line of validation between
    "torchtitan 2024": (
        "torchtitan",
        told(
            "[rank0]:2024-07-01 {clock},123 - root - INFO - step: {i:2d}  loss: 10.9  memory: "
            "20.50GiB(21.6%)  wps: 1,234  mfu: 30.1%"
        ),
        {"step_s": 4.0, "tokens_per_s_per_device": 1234, "peak_memory_gb": 20.5},
    ),
    "torchtitan, validated": (
        "torchtitan",
        told(
            "[rank0]:[titan] 2026-07-01 {clock},123 - root - INFO - step: {i:2d}  loss:  9.1  "
            "grad_norm:  1.2  memory: 20.50GiB(21.6%)  tps: 12345  tflops: 1,318.63  mfu: 30.1%\n"
            "[rank0]:[titan] 2026-07-01 {clock},923 - root - INFO - validate step: 77  loss:  9.0  "
            "memory: 18.50GiB(19.6%)  tps: 99,999"
        ),
        {
            "step_s": 4.0,
            "tokens_per_s_per_device": 12_345,
            "tflops_per_device": 1318.63,
            "steps": 30,
        },
    ),
    # trainer.py of nanotron: the time lost its "elapsed_", the batch counts tokens
    "nanotron 2025": (
        "nanotron",
        told(
            "08/31/2025 {clock} [INFO|DP=0|PP=0|TP=0]: iteration: {i} / 15 | consumed_tokens: 2.1M "
            "| time_per_iteration_ms: 9K | tokens_per_sec: 116K | tokens_per_sec_per_gpu: 14.6K | "
            "global_batch_size: 1.05M | grad_norm: 1 | lm_loss: 10 | lr: 0.0003 | "
            "model_tflops_per_gpu: 131 | eta: 1:00:00",
            head="08/31/2025 10:00:00 [INFO|DP=0|PP=0|TP=0]: [Start training] datetime: 2025-08-31 "
            "14:37:26.889276 | mbs: 2 | grad_accum: 4 | global_batch_size: 256 | sequence_length: "
            "4096 | train_steps: 15 | start_iteration_step: 0\n",
        ),
        NINE
        | {
            "tokens_per_s_per_device": 14_600,
            "global_batch": 256,
            "micro_batch": 2,
            "seq_len": 4096,
        },
    ),
    # InternEvo: commas between before 2024, blanks after; rates of other kinds in between
    "internevo, commas": (
        "internevo",
        told(
            "2023-07-07 {clock},296\tINFO train.py:323 in record_current_batch_training_metrics -- "
            "tflops=189.8337110,step={before},loss=11.6,tgs (tokens/gpu/second)=4274.45,lr=6e-07,"
            "micro_num=4,num_consumed_tokens={tokens},num_samples_in_batch=16"
        ),
        {"step_s": 4.0, "tokens_per_s_per_device": 4274.45, "tflops_per_device": 189.833711},
    ),
    "internevo, blanks": (
        "internevo",
        told(
            "2024-03-27 {clock},047 INFO training_internlm.py:599 in record_current -- "
            "tflops=180.457 step={before} loss=0.005 real_tgs=9.9 tgs (tokens/gpu/second)=3345.72 "
            "tgs/last_tgs_1=3345.74 tgs/tgs_all=2958.36 tgs/last_tgs_50=0 lr=1e-05 micro_num=4 "
            "num_consumed_tokens={tokens} loss/cn=nan"
        ),
        {"step_s": 4.0, "tokens_per_s_per_device": 3345.72},
    ),
    # utils/timer.py of DeepSpeed: the rate of the whole job; before 0.7 without the epoch
    "deepspeed 2021": (
        "deepspeed",
        told(
            "[2021-05-01 {clock},349] [INFO] [timer.py:154:stop] 0/{i}, SamplesPerSec=128.0, "
            "MemAllocated=6.01GB, MaxMemAllocated=19.52GB"
        ),
        {"step_s": 4.0, "peak_memory_gb": 19.52, "global_batch": 512},
    ),
    "deepspeed 2024": (
        "deepspeed",
        told(
            "[2024-03-07 {clock},646] [INFO] [timer.py:260:stop] epoch=0/micro_step={n}/"
            "global_step={i}, RunningAvgSamplesPerSec=58.7306, CurrSamplesPerSec=128.0, "
            "MemAllocated=6.01GB, MaxMemAllocated=19.52GB"
        ),
        {"step_s": 4.0, "peak_memory_gb": 19.52, "global_batch": 512},
    ),
    # step3_rlhf_finetuning of DeepSpeed-Chat: two engines, each with the rate of its own part
    "deepspeed-chat, its third step": (
        "deepspeed",
        told(
            "[2023-06-21 {clock},424] [INFO] [timer.py:199:stop] epoch=0/micro_step={i}/"
            "global_step={i}, RunningAvgSamplesPerSec=6.6, CurrSamplesPerSec=6.375, "
            "MemAllocated=7.79GB, MaxMemAllocated=10.55GB\n"
            "[2023-06-21 {clock},954] [INFO] [timer.py:199:stop] epoch=0/micro_step={i}/"
            "global_step={i}, RunningAvgSamplesPerSec=16.6, CurrSamplesPerSec=16.36, "
            "MemAllocated=7.79GB, MaxMemAllocated=10.55GB\n"
            "epoch: 0|step: {i}|ppo_ep: 1|act_loss: 0.01|cri_loss: 0.2|unsuper_loss: 0.0"
        ),
        {"step_s": 4.0, "peak_memory_gb": 10.55, "global_batch": None},
    ),
    # run_clm_no_trainer.py under Accelerate
    "accelerate": (
        "hf_trainer",
        "08/01/2024 10:00:00 - INFO - __main__ - Distributed environment: MULTI_GPU Backend: nccl\n"
        "Num processes: 8\nProcess index: 0\n"
        "08/01/2024 10:00:00 - INFO - __main__ - ***** Running training *****\n"
        "08/01/2024 10:00:00 - INFO - __main__ -   Instantaneous batch size per device = 2\n"
        "08/01/2024 10:00:00 - INFO - __main__ -   Total train batch size (w. parallel, "
        "distributed & accumulation) = 16\n"
        + "\r".join(
            f"  1%|█         | {i}/1000 [{i * 9 // 60:02d}:{i * 9 % 60:02d}<33:00,  9.00s/it]"
            for i in STEPS
        ),
        NINE | {"devices": 8, "micro_batch": 2, "global_batch": 16},
    ),
    # utils/metric of verl under numpy 2, which writes its types
    "verl, numpy 2": (
        "verl",
        told(
            "(TaskRunner pid=77) step:{i} - global_seqlen/min:10 - "
            "perf/max_memory_allocated_gb:np.float64(33.5) - timing_s/gen:np.float64(3.25) - "
            "timing_s/step:np.float64(9.0) - perf/total_num_tokens:1000 - "
            "perf/time_per_step:np.float64(9.0) - perf/throughput:np.float64(413.25)"
        ),
        NINE | {"tokens_per_s_per_device": 413.25, "peak_memory_gb": 33.5},
    ),
    # trainer of LLaMA-Factory: numbers as text in later releases
    "llama-factory, text": (
        "llama_factory",
        told(
            '{{"current_steps": {i}, "total_steps": 760, "loss": 0.9, "lr": 4.9e-05, "epoch": 0.2, '
            '"percentage": 6.5, "elapsed_time": "0:{clock}", "remaining_time": "1 day, 0:15:15", '
            '"throughput": "1234.56", "total_tokens": 1000}}'
        ),
        {"step_s": 4.0},
    ),
    # examples of Colossal-AI: gpt/gemini/train_gpt_demo.py
    "colossal-ai, gemini": (
        "colossalai",
        told(
            "[10/16/23 {clock}] INFO     colossalai - colossalai - INFO: train_gpt_demo.py:320\n"
            "  INFO     colossalai - colossalai - INFO: [{i}/30] Loss:10.988, Step time: 9.000s, "
            "TFLOPS: 82.345, FWD time: 0.093s, BWD time: 0.412s, OPTIM time: 0.028s"
        ),
        NINE | {"tflops_per_device": 82.345},
    ),
    # nanochat, and the same line of the lessons before it
    "nanochat": (
        "nanogpt_family",
        told(
            "step {i:05d}/21400 (0.05%) | loss: 9.012345 | lrm: 1.00 | dt: 9000.00ms | tok/sec: "
            "1,116,508 | bf16_mfu: 47.10 | epoch: 1 | total time: 1.2m | eta: 99.1m"
        ),
        NINE,
    ),
    "build-nanogpt": (
        "nanogpt_family",
        told(
            "step {i:4d} | loss: 9.527085 | lr: 1.2e-04 | norm: 2.1 | dt: 9000.00ms | "
            "tok/sec: 1548000.12345"
        ),
        NINE,
    ),
    # llm.c: train_gpt2.cu and train_gpt2.py
    "llm.c": (
        "llm_c",
        told(
            "step {i:4d}/18865 | loss 7.5 (+1.2z)| norm 1.8 (+nanz)| lr 8.57e-07 | 9000.00 ms | "
            "42.6% bf16 MFU | 171545 tok/s"
        ),
        NINE,
    ),
    "llm.c, python": (
        "llm_c",
        told(
            "step {i:4d}/18865 | train loss 7.512345 | lr_scale 1.00e+00 | "
            "(9000.00 ms | 171545 tok/s)"
        ),
        NINE,
    ),
    # modded-nanogpt and parameter-golf: milliseconds, later seconds; a validation between
    "modded-nanogpt, ms": (
        "nanogpt_family",
        "".join(
            f"step:{i}/5100 train_loss:6.1 train_time:{9_000 * i}ms step_avg:9000.00ms\n"
            for i in STEPS
        ),
        NINE,
    ),
    "modded-nanogpt, s": (
        "nanogpt_family",
        "".join(
            f"step:{i}/5100 train_time:{9.0 * i:.3f}s step_avg:9000.00ms\n"
            + f"step:{i}/5100 val_loss:6.1 train_time:{9.0 * i:.3f}s step_avg:9000.00ms\n"
            * (i % 10 == 0)
            for i in STEPS
        ),
        NINE,
    ),
    # tqdm-loggable under Levanter, where the output is no terminal
    "levanter": (
        "levanter",
        told(
            "2025-03-01T{clock} - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:146 - INFO :: "
            "Progress on:train {i}.0it/10.0kit rate:9.0s/it remaining:1:05:15 elapsed:31:40 "
            "postfix:loss=3.1"
        ),
        NINE,
    ),
    # examples/run_grpo.py of NeMo-RL: rates of the parts follow on that of the step
    "nemo-rl": (
        "nemo_rl",
        told(
            "========================= Step {i}/30 =========================\n  • Total step time: "
            "     9.00s\n  • generation:   4.95s (13.9%)\n    - E2E (Tokens/sec/gpu): 1073.59\n"
            "    - Policy Training (Tokens/sec/gpu): 3492.73\n"
            "    - Generation Worker Group (Tokens/sec/gpu): 7745.97"
        ),
        NINE | {"tokens_per_s_per_device": 1073.59},
    ),
    # golden values of Megatron's tests before 2025: lists from a start, each so many steps
    "golden values as lists": (
        "megatron_golden_json",
        json.dumps(
            {
                "lm loss": {"start_step": 0, "end_step": 60, "step_interval": 5, "values": [9.1]},
                "iteration-time": {
                    "start_step": 0,
                    "step_interval": 5,
                    "values": [30.0] + [9.0] * 9,
                },
            }
        ),
        NINE,
    ),
    "nvidia-smi": (
        "nvidia_smi",
        "timestamp, index, name, memory.used [MiB], utilization.gpu [%]\n"
        + "".join(
            f"2025/09/08 17:26:{i:02d}.123, {i % 8}, NVIDIA H100 80GB HBM3, {70_000 + i} MiB, 9 %\n"
            for i in STEPS
        ),
        {"devices": 8, "nodes": 1, "accelerator": "NVIDIA H100 80GB HBM3"},
    ),
}


def off(text: str, tmp_path, form: str, figures: dict) -> dict:
    path = tmp_path / "job.out"
    path.write_text(text)
    got = sc.learn(path)[0]
    wanted = {"format": form} | figures
    near = {
        n: pytest.approx(v, rel=1e-3) if isinstance(v, (int, float)) else v
        for n, v in wanted.items()
    }
    return {n: (got[n], wanted[n]) for n, v in near.items() if got[n] != v}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_writes_its_lines(name, tmp_path):
    form, text, figures = RELEASES[name]
    assert not off(text, tmp_path, form, figures)


DIRT = ("srun labels", "cri stamps", "colours in numbers", "two runs", "endless numbers")
TABLES = {"golden values as lists", "nvidia-smi"}  # what is no line by line is no log with labels


@pytest.mark.parametrize("name", sorted({*RELEASES} - TABLES))
def test_dirt_leaves_the_figures_of_a_release(name, tmp_path):
    told = tried(RELEASES[name][1].encode(), tmp_path, DIRT)
    assert not {kind: said for kind, said in told.items() if said}
