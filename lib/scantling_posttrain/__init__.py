"""Post-training on the same machine as pre-training: fine-tuning, adapters, preference and policy
training, from the core's blocks.

`tuning` says what a step on given samples takes and holds (SFT, LoRA, QLoRA, DPO); `rollout` what
generating takes, on one page; `policy` puts both together into a step of GRPO or PPO, split or
colocated; `weight_sync` how new weights reach the engine. `tables` reads published rows,
`predict` answers for each of them.
"""
