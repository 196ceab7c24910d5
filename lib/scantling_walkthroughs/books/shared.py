"""What a book reads off `result`, the assessment of its design."""


def cluster(result):
    return result.resolved.cluster


def chip(cluster):
    return cluster.accelerator


def model(result):
    return result.resolved.model


def up(cluster):
    return cluster.scale_up_bytes_per_s


def out(cluster):
    return cluster.scale_out_bytes_per_s


def half(chip):
    """Half of what a program can have of one device. [bytes]"""
    return chip.hbm_usable_bytes / 2
