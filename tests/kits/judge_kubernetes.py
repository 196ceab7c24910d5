"""python judge_kubernetes.py KIT...: jobset.yaml, pytorchjob.yaml and trainjob.yaml against the
projects' published CRD schemas, made strict, and their pods against Kubernetes' own schema."""

from __future__ import annotations

import sys
from pathlib import Path

import kubernetes_validate
import yaml
from crd import check
from kubeflow_trainer_api import models
from stand_ins import judge_all


def lost(given, kept, path=""):
    """Dotted paths that are in `given` and not in `kept`."""
    if isinstance(given, dict):
        return [
            x
            for k, v in given.items()
            for x in (
                [f"{path}.{k}"]
                if not isinstance(kept, dict) or k not in kept
                else lost(v, kept[k], f"{path}.{k}")
            )
        ]
    if isinstance(given, list):
        return [
            x
            for i, v in enumerate(given)
            for x in (lost(v, kept[i], f"{path}[{i}]") if i < len(kept) else [f"{path}[{i}]"])
        ]
    return []


def judge(kit):
    d = yaml.safe_load((Path(kit) / "jobset.yaml").read_text())
    check(d)
    kept = models.JobsetV1alpha2JobSet.from_dict(d).to_dict()
    if lost(d, kept):
        raise KeyError(f"unknown fields: {lost(d, kept)}")
    job = d["spec"]["replicatedJobs"][0]["template"]
    kubernetes_validate.validate(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": d["metadata"]["name"]},
            "spec": job["spec"],
        },
        "1.37",
        strict=True,
    )
    limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    other = Path(kit) / "pytorchjob.yaml"
    if other.exists():
        j = yaml.safe_load(other.read_text())
        check(j)
        pods = 0
        for role in j["spec"]["pytorchReplicaSpecs"].values():
            kubernetes_validate.validate(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "pod"},
                    "spec": role["template"]["spec"],
                },
                "1.37",
                strict=True,
            )
            pods += role["replicas"]
            if (
                role["template"]["spec"]["containers"][0]["name"] != "pytorch"
            ):  # the operator's webhook
                raise ValueError("the container of a PyTorchJob is named pytorch")
        if (
            pods != job["spec"]["parallelism"]
            or pods != j["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"]
        ):
            raise ValueError(f"{pods} pods")
    for name, kind in (
        ("trainingruntime", models.TrainerV1alpha1TrainingRuntime),
        ("trainjob", models.TrainerV1alpha1TrainJob),
    ):
        part = yaml.safe_load((Path(kit) / f"{name}.yaml").read_text())
        gone = lost(part, kind.from_dict(part).to_dict())
        if gone:
            raise KeyError(f"unknown fields of trainjob.yaml: {gone}")
    return dict(
        name=d["metadata"]["name"],
        nodes=job["spec"]["parallelism"],
        per_node=next(iter(limits.values())),
        resource=next(iter(limits)),
    )


if __name__ == "__main__":
    judge_all(judge, sys.argv[1:])
