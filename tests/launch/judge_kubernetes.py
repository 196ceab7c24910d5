"""python judge_kubernetes.py KIT...: jobset.yaml against the published JobSet models (a key lost in the round trip is unknown) and its pod against Kubernetes' own schema."""
from __future__ import annotations

import sys
from pathlib import Path

import kubernetes_validate
import yaml
from kubeflow_trainer_api import models
from stand_ins import judge_all


def lost(given, kept, path=""):
    """Dotted paths that are in `given` and not in `kept`."""
    if isinstance(given, dict):
        return [x for k, v in given.items() for x in ([f"{path}.{k}"] if not isinstance(kept, dict) or k not in kept else lost(v, kept[k], f"{path}.{k}"))]
    if isinstance(given, list):
        return [x for i, v in enumerate(given) for x in (lost(v, kept[i], f"{path}[{i}]") if i < len(kept) else [f"{path}[{i}]"])]
    return []


def judge(kit):
    d = yaml.safe_load((Path(kit) / "jobset.yaml").read_text())
    if (d["apiVersion"], d["kind"]) != ("jobset.x-k8s.io/v1alpha2", "JobSet"):
        raise ValueError(f"not a JobSet: {d['apiVersion']} {d['kind']}")
    kept = models.JobsetV1alpha2JobSet.from_dict(d).to_dict()
    if lost(d, kept):
        raise KeyError(f"unknown fields: {lost(d, kept)}")
    job = d["spec"]["replicatedJobs"][0]["template"]
    kubernetes_validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": d["metadata"]["name"]}, "spec": job["spec"]}, "1.37", strict=True)
    limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return dict(name=d["metadata"]["name"], nodes=job["spec"]["parallelism"], per_node=next(iter(limits.values())), resource=next(iter(limits)))


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
