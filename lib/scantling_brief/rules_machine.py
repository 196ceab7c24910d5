"""What a line says of the machine: devices, nodes, racks, sites, network, memory, storage."""

from .fragments import (
    ACCELERATOR,
    BE,
    DEVICE_NOUN,
    EACH_HOLDS,
    ENDLESS,
    FAMILY,
    GROUP,
    HBM,
    LINK,
    OVER,
    RACK,
    SITES,
    STORAGE,
    TIMES,
    WENT,
    number_in,
    whole_in,
)
from .readers import (
    accelerator,
    always,
    devices,
    gigabits,
    gigabytes,
    gigabytes_per_s,
    gigabytes_per_s_of,
    groups_beside,
    number,
    of_a_node,
    of_each,
    one_chip,
    plain,
    plain_of,
    prefixed,
    product,
    product_of,
    quotient,
    rate_of,
    rest,
    tpu_slice,
    tpu_slices,
    whole,
    word,
)
from .rule import asks, sets

# so many nodes of so many devices, where a product alone says it: 4 * 8 H100, 512 H100 (64x8)
_PRODUCT = rf"{whole_in('n')}\s*[x×*]\s*\(?\s*(?P<per>\d{{1,2}})(?!\d)"
# so many groups that are larger than a node: 2 x 2048 H100
_GROUPS = rf"{whole_in('n')}\s*[x×*]\s*(?P<per>\d{{3,6}})(?P<per_s>)"
_SLICE = (
    r"(?:(?:TPU[\s-]?)?(?:Trillium|Ironwood)[\s(]+)?"
    r"(?P<acc>TPU[\s-]?v\d[a-z]?|v[3-7][epx]?)(?P<more>)-(?P<v>\d+)(?P<v_s>)"
)
_NET = (
    r"(?:ib|infini-?band|roce(?:\s?v2)?|ethernet|[ehnx]dr|network(?:ing)?|fabric"
    r"|links?|nics?|ports?)"
)
_RATE = r"\d+(?:\.\d+)?\s?[gt]i?b(?:it)?s?(?:/s|ps)"
_STORE = (
    rf"(?:shared\s+)?(?:{STORAGE})|storage|stores?|(?:shared\s+)?file\s?system|disks?|object\s+store|ceph"
    r"|(?:write|writing|read|reading|save|saving)(?:\s+(?:checkpoints?|data|the))*|checkpoints?|data\s?loader"
)
# a count that may be used whole
_ALL_OF = r"(?:at most|(?:no|not) more than|up to|max(?:imum|\.)?(?: of)?|limited to|capped at)"
# all devices of the nodes: 4 nodes, 32 H100 in total
_IN_ALL = r"(?:in\s+total|total|altogether|in\s+all|overall|all\s+together)"
_APART = (
    r"(?P<km>\d+(?:\.\d+)?)\s*km(?:\s+(?:of\s+(?:dark\s+)?(?:fib(?:er|re)|cable)|apart|away"
    r"|from\s+each\s+other|between\s+them))+"
)
_OF_ALL = r"\s+(?:out\s+)?of\s+(?:the|our|their|those|these)\s+"
_DEVICES = rf"(?:{ACCELERATOR}(?:\s+{DEVICE_NOUN})?|{DEVICE_NOUN})"
_ADD = (
    rf"(?:add(?:ing|ed)?|with|get|buy|rent)\s+(?:another\s+)?{whole_in('v')}\s+"
    r"(?:more|additional|extra|further)(?!\s+tok)\s*"
)
MACHINE = (
    *sets(
        {"racks": whole("n"), "accelerator": accelerator},
        rf"(?=[\w\s-]*(?:{RACK})\s*[x×*]){ACCELERATOR}\s*[x×*]\s*{whole_in('n')}(?!\s*[x×*\d])",
        why="so many racks",
    ),
    *sets(
        {"racks": whole("n"), "accelerator": accelerator},
        rf"{whole_in('n')}{TIMES}(?P<pre>)(?P<acc>NVL72)(?P<more>)s?"
        r"(?:\s+(?:racks?|systems?|cabinets?))?",
    ),
    *sets(
        {
            "cluster.devices": devices("c"),
            "cluster.devices_per_node": quotient("c", "n"),
            "accelerator": accelerator,
        },
        rf"{whole_in('n')}{TIMES}{GROUP}\s*[,;:(/]?\s*(?:and\s+|with\s+)?(?:a\s+total\s+of\s+|total\s+)"
        rf"{whole_in('c')}\s*[x×]?\s*(?:{ACCELERATOR}(?:\s+{DEVICE_NOUN})?|{DEVICE_NOUN})\)?",
        rf"{whole_in('n')}{TIMES}{GROUP}\s*[,;:(/]?\s*(?:and\s+|with\s+)?{whole_in('c')}\s*[x×]?\s*"
        rf"(?:{ACCELERATOR}(?:\s+{DEVICE_NOUN})?|{DEVICE_NOUN})\s*[,(]?\s*{_IN_ALL}\)?",
    ),
    *sets(
        {
            "nodes": whole("n"),
            "cluster.devices_per_node": of_each("c", "n"),
            "accelerator": accelerator,
        },
        rf"{whole_in('n')}{TIMES}{GROUP}\s*[,(/]\s*{whole_in('c')}\s*[x×]?\s*"
        rf"(?:{ACCELERATOR}(?:\s+{DEVICE_NOUN})?|{DEVICE_NOUN})\)?",
        rf"{whole_in('n')}{TIMES}(?:(?:nvidia\s+)?[dh]gx(?:-[12]|[\s-][a-z]+\d+)?)(?:\s+{GROUP})?\s*[,(:]\s*"
        rf"{whole_in('c')}\s*[x×]?\s*{ACCELERATOR}(?:\s+{DEVICE_NOUN})?(?:\s+each)?\)?",
        why="more devices than a node holds are those of all nodes",
    ),
    *sets(
        {"nodes": whole("n"), "cluster.devices_per_node": whole("per"), "accelerator": accelerator},
        rf"{_PRODUCT}\s*[x×*]?\s*{ACCELERATOR}(?:\s+{DEVICE_NOUN})?",
    ),
    *sets(
        {"cluster.devices": product("n", "per"), "accelerator": accelerator},
        rf"{_GROUPS}\s*[x×*]?\s*{ACCELERATOR}(?:\s+{DEVICE_NOUN})?",
        why="so many groups of so many devices",
    ),
    *sets(
        {"cluster.devices": product_of("n", "per", "k"), "accelerator": accelerator},
        rf"{_PRODUCT}\s*[x×*]\s*(?P<k>\d{{1,4}})(?P<k_s>)\s*[x×*]?\s*{ACCELERATOR}(?:\s+{DEVICE_NOUN})?",
        rf"{ACCELERATOR}(?:\s+(?:topology|torus|slice|pod))?[\s,]+(?P<n>\d{{1,2}})(?P<n_s>)x(?P<per>\d{{1,2}})x(?P<k>\d{{1,2}})(?P<k_s>)"
        r"(?:\s+(?:topology|torus|slice|pod))?",
        why="a product of three: all devices",
    ),
    *sets(
        {"cluster.devices": product_of("n", "per"), "accelerator": accelerator},
        rf"(?=TPU|Trillium|Ironwood|v\d){ACCELERATOR}[\s,-]+(?P<n>\d{{1,2}})(?P<n_s>)x(?P<per>\d{{1,2}})(?P<per_s>)(?!x\d)"
        r"(?:\s+(?:topology|torus|slice|pod))?",
        why="a slice of a plane of chips",
    ),
    *sets(
        {
            "accelerator": accelerator,
            "nodes": groups_beside("per", "n"),
            "cluster.devices_per_node": of_a_node("per", "n"),
        },
        rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?\s*[x×*]\s*(?P<per>\d{{1,2}})\s*[x×*]\s*(?P<n>\d{{1,5}})(?P<n_s>)",
        rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?\s*[x×*]\s*(?P<per>\d{{1,2}})\s*[x×*]\s*{whole_in('n')}\s*{GROUP}",
    ),
    *asks(
        "how many are left (cluster.devices), and are these spare (reliability.spares)?",
        rf"(?:we\s+|i\s+|just\s+)*(?:lost|lose|losing|loses|minus|dropp?(?:ed|ing)?)\s+(?:another\s+)?{whole_in('n')}\s*"
        rf"(?:{GROUP}|{DEVICE_NOUN}|{ACCELERATOR})(?:\s+(?:out\s+)?(?:of|from))?(?:\s+(?:our|the))?",
        choices=("cluster.devices", "reliability.spares"),
    ),
    *sets(
        {"nodes": whole("n"), "cluster.devices_per_node": whole("per")},
        rf"{_PRODUCT}\s*[x×*]?\s*{DEVICE_NOUN}",
        rf"{_PRODUCT}(?=\s*\))",
        rf"{whole_in('n')}(?:{TIMES})?{GROUP}{EACH_HOLDS}(?P<per>\d{{1,3}})\s*[x×*]?\s*{DEVICE_NOUN}"
        rf"(?:\s+(?:each|(?:per|in each)\s+{GROUP}))?",
    ),
    *sets(
        {"nodes": whole("n"), "cluster.devices_per_node": whole("per"), "accelerator": accelerator},
        rf"{whole_in('n')}(?:{TIMES})?{GROUP}{EACH_HOLDS}(?P<per>\d{{1,3}})\s*[x×*]?\s*{ACCELERATOR}"
        rf"(?:\s+{DEVICE_NOUN})?(?!\s+{GROUP})(?:\s+(?:each|(?:per|in each)\s+{GROUP}))?",
    ),
    *sets(
        {"nodes": whole("n"), "accelerator": accelerator, "cluster.devices_per_node": whole("per")},
        rf"{whole_in('n')}(?:{TIMES})?{GROUP}\s*(?:of|with|w/|,|[x×*])?\s*{ACCELERATOR}\s*[x×*]\s*(?P<per>\d{{1,2}})(?P<per_s>)"
        rf"(?:\s*{DEVICE_NOUN})?(?:\s+(?:each|(?:per|in\s+each)\s+{GROUP}))?",
    ),
    *sets(
        {"cluster.devices": one_chip, "accelerator": accelerator},
        rf"(?:an?|one|my|our|this|single)\s+(?:single\s+)?{ACCELERATOR}"
        r"(?!\w|-\d|\s*(?:clusters?|nodes?|servers?|pods?|box(?:es)?|systems?|machines?"
        r"|racks?|hours?|training|runs?|jobs?|setup|gpu"
        r"[\s-]hours?|fleet|partition|s\b))",
    ),
    *sets(
        {"cluster.devices": one_chip, "accelerator": accelerator},
        rf"(?:my|our|the)\s+(?:gpu|card|chip|device|accelerator)\s+(?:is|being|:)\s+(?:an?\s+)?{ACCELERATOR}",
    ),
    # memory of a device, apart from its name
    *sets(
        {"memory": whole("v")},
        r"(?:(?<=gpus\s)|(?<=cards\s)|(?<=chips\s)|(?<=devices\s))(?:with|having|of)\s+(?P<v>\d+)\s?GBs?\s+(?:of\s+)?memory(?:\s+each)?",
    ),
    *sets(
        {"memory": whole("v"), "cluster.devices": devices("c")},
        rf"{whole_in('c')}\s*[x×*]?\s*{DEVICE_NOUN}\s*(?:\(|with|w/|of|having"
        r"|at)\s*(?P<v>\d+)\s?GB?s?"
        r"(?:\s+(?:each|of\s+(?:v-?ram|memory|hbm\w*)|v-?ram|hbm\w*|memory))*",
        rf"{whole_in('c')}\s*[x×*]?\s*(?P<v>\d+)\s?GBs?\s+{DEVICE_NOUN}",
    ),
    *sets(
        {"memory": whole("v"), "cluster.devices_per_node": whole("c")},
        (
            rf"(?:with\s+|of\s+|\()?(?P<c>\d{{1,2}})(?P<c_s>)\s?[x×*]\s?(?P<v>{HBM})\s?GB?s?(?!"
            rf"[\w/])(?!\s+(?:(?:NVIDIA|AMD)\s+)?(?:{FAMILY}))\)?"
        ),
    ),
    *sets(
        {"memory": whole("v")},
        r"(?P<v>\d+)\s?GBs?\s+(?:of\s+)?(?:v-?ram|hbm\w*|(?:gpu|device)\s+memory)(?:\s+each)?",
        r"(?P<v>\d+)\s?GBs?\s+(?:each|per\s+(?:gpu|card|device|chip))",
        rf"(?P<v>\d+)\s?GB\s+(?:{DEVICE_NOUN}|ones|versions?|variants?|kind)",
    ),
    *sets(
        {"cluster.devices": devices("c"), "accelerator": accelerator},
        (
            rf"(?:a\s+|one\s+|1\s+)?pod\s+of\s+{whole_in('c')}{TIMES}{ACCELERATOR}(?:\s+"
            rf"{DEVICE_NOUN})?"
        ),
    ),
    *sets(
        {"nodes": whole("n"), "accelerator": accelerator, "cluster.devices_per_node": whole("per")},
        (
            rf"(?P<n>1)\s+(?P<n_s>)(?P<per>\d+)\s?[x×]\s?{ACCELERATOR}\s+"
            r"(?:node|server|machine|box|host)(?!s)"
        ),
        rf"{whole_in('n')}\s+(?P<per>\d+)\s?[x×]\s?{ACCELERATOR}\s+{GROUP}",
        rf"{whole_in('n')}-(?:node|host|server|machine)\s+(?P<per>)(?P<per_s>){ACCELERATOR}(?:\s+(?:cluster|system|machine))?",
    ),
    *sets(
        {
            "cluster.devices": devices("c"),
            "accelerator": accelerator,
            "cluster.devices_per_node": whole("c"),
        },
        (
            rf"{whole_in('c')}\s?[x×]\s?{ACCELERATOR}\s+(?:node|server"
            r"|machine|box|host)(?!s)"
        ),
        rf"(?P<c>4|8)(?P<c_s>)\s+{ACCELERATOR}\s+(?:node|server|machine|box|host)(?!s|\s+cluster)",
    ),
    *sets(
        {"nodes": whole("n"), "accelerator": accelerator},
        rf"{ACCELERATOR}\s*[x×*]\s*{whole_in('n')}\s*{GROUP}",
        rf"(?=(?:nvidia\s+)?(?:dgx|hgx)[\s-]){ACCELERATOR}\s*[x×*]\s*{whole_in('n')}(?!\s*{DEVICE_NOUN})",
        (
            rf"{whole_in('n')}{TIMES}(?=(?:nvidia\s+)?(?:dgx|hgx)[\s-]){ACCELERATOR}"
            rf"(?!\s+{DEVICE_NOUN})"
        ),
    ),
    *sets(
        {"accelerator": accelerator, "cluster.devices": devices("c")},
        (
            rf"{OVER}{whole_in('c')}{TIMES}{ACCELERATOR}(?:\s+{DEVICE_NOUN})?"
            rf"(?!\s+{GROUP})"
        ),
    ),
    *sets(
        {"accelerator": accelerator, "cluster.devices": devices("c")},
        rf"{_ALL_OF}\s+{whole_in('c')}{TIMES}(?:{ACCELERATOR}(?:\s+{DEVICE_NOUN})?|{DEVICE_NOUN})"
        rf"(?!\s+{GROUP})",
        why="all that there are at most",
    ),
    *sets(
        {"cluster.devices": number("v")},
        rf"(?P<v>{ENDLESS})(?P<v_s>){TIMES}{ACCELERATOR}(?:\s+{DEVICE_NOUN})?",
    ),
    *sets(
        {"racks": whole("n"), "accelerator": accelerator},
        (
            rf"{whole_in('n')}{TIMES}(?:{ACCELERATOR}\s+)?racks?(?!\s+"
            r"(?:fail|loss|outage))"
        ),
        rf"{whole_in('n')}\s+racks?\s+of\s+{ACCELERATOR}",
        rf"{ACCELERATOR}\s*[x×*]\s*{whole_in('n')}\s*racks?",
    ),
    *sets(
        {"cluster.devices": tpu_slices, "accelerator": accelerator},
        rf"{_SLICE}\s*[x×*]\s*{whole_in('n')}(?:\s+slices?)?",
        rf"{whole_in('n')}(?:\s*[x×*]\s*|\s+(?:slices?\s+of\s+)?){_SLICE}",
        why="so many slices",
    ),
    *sets(
        {"cluster.devices": tpu_slice, "accelerator": accelerator},
        rf"{_SLICE}(?:\s+slices?)?",
        why="a slice of TPU v2 to v5p is named by its cores, two a chip "
        "(cloud.google.com/tpu/docs/v5p)",
    ),
    *sets(
        {"accelerator": accelerator, "cluster.devices": devices("c")},
        rf"{ACCELERATOR}\s*[x×*]\s*{whole_in('c')}(?:\s*{DEVICE_NOUN})?(?!\s*(?:racks?|pods?|{GROUP})\b)",
        rf"{whole_in('c')}[\s-]*{DEVICE_NOUN}\s+{ACCELERATOR}",
    ),
    *sets(
        {"accelerator": accelerator, "cluster.devices": devices("c")},
        rf"{ACCELERATOR}\s*,\s*{whole_in('c')}(?=\s*\))",
        rf"{ACCELERATOR}\s*\(\s*{whole_in('c')}(?:\s+{DEVICE_NOUN})?\s*\)",
    ),
    *sets(
        {"cluster.devices_per_node": whole("v")},
        r"(?P<v>\d{1,2})(?P<v_s>)\s+(?:gpus?\s+)?each(?=\s*\))",
    ),
    *sets(
        {"cluster.topology": word},
        r"(?P<v>rail-optimized|fat-tree|rail-only|dragonfly\+?)(?:\s+(?:topology|network|fabric))?",
    ),
    *sets(
        {"nodes": whole("n")},
        rf"{whole_in('n')}-(?:node|host|server)(?:\s+(?:cluster|job|run|training|setup|system))?",
    ),
    *sets({"accelerator": accelerator}, rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?"),
    *sets(
        {
            "cluster.sites": whole("n"),
            "accelerator": accelerator,
            "cluster.devices": product("n", "c"),
            "apart_km": plain_of("km"),
        },
        rf"{whole_in('n')}\s+{SITES},?\s+{_APART},?\s+(?:each\s+)?(?:(?:with|w/|of|having)\s+)?{whole_in('c')}{TIMES}"
        rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?(?:\s+each)?",
    ),
    *sets({"apart_km": plain_of("km")}, _APART),
    *sets(
        {
            "cluster.sites": whole("n"),
            "accelerator": accelerator,
            "cluster.devices": product("n", "c"),
        },
        (
            rf"{whole_in('n')}\s+{SITES},?\s+each\s+(?:(?:with|of|having)\s+)?{whole_in('c')}{TIMES}"
            rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?"
        ),
        (
            rf"{whole_in('n')}\s+{SITES},?\s+(?:with|w/|of|having)\s+{whole_in('c')}{TIMES}"
            rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?\s+each"
        ),
        rf"{whole_in('n')}\s+{SITES}\s+of\s+{whole_in('c')}{TIMES}{ACCELERATOR}(?:\s+{DEVICE_NOUN})?(?:\s+each)?",
    ),
    *sets(
        {
            "cluster.pod_devices": devices("c"),
            "accelerator": accelerator,
            "cluster.devices": product("n", "c"),
        },
        (
            rf"{whole_in('n')}\s+pods\s+of\s+{whole_in('c')}(?:{TIMES}"
            rf"(?:{ACCELERATOR}|{DEVICE_NOUN}))?"
        ),
        rf"{whole_in('n')}\s+(?:full\s+)?pods\s+of\s+{ACCELERATOR}\s*[,(]?\s*(?:of\s+|with\s+)?"
        rf"{whole_in('c')}\s+{DEVICE_NOUN}\s+(?:each|(?:per|a)\s+pod)\)?",
    ),
    *sets(
        {"cluster.devices": devices("v")},
        rf"{DEVICE_NOUN}\s*[:=(]\s*{whole_in('v')}(?=\s*(?:\)|$|[;.]|,\s))",
        (rf"{whole_in('v')}(?:{TIMES}|-){DEVICE_NOUN}(?!\s*(?:/|(?:per|a|in each|each)\b))"),
    ),
    *sets(
        {"nodes": whole("n"), "accelerator": accelerator, "cluster.devices_per_node": whole("per")},
        (
            rf"{whole_in('n')}\s*{GROUP}\s*(?:of|with|x|×|,)?\s*(?P<per>\d+)\s*[x×]?\s*"
            rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?(?:\s+(?:each|(?:per"
            rf"|in each)\s+{GROUP}))?"
        ),
    ),
    *sets(
        {"nodes": whole("n"), "accelerator": accelerator, "cluster.devices_per_node": whole("per")},
        (
            rf"{whole_in('n')}{TIMES}(?:{ACCELERATOR}\s+)?{GROUP}(?:,?\s*"
            r"(?:of|with|x|×|each with|each having|having|at)\s*(?P<per>\d+)"
            rf"(?:\s*[x×]?\s*{DEVICE_NOUN}(?:\s+each)?|\s+each|(?=\s*(?:$|[,.;:)?!]))))?"
        ),
    ),
    *sets(
        {"cluster.devices_per_node": whole("v")},
        rf"(?P<v>\d+)\s*[x×]?\s*{DEVICE_NOUN}\s*(?:per|/|a|in each|in a)\s*{GROUP}",
    ),
    *sets(
        {"cluster.devices_per_node": devices("per"), "accelerator": accelerator},
        (
            rf"{whole_in('per')}{TIMES}{ACCELERATOR}(?:\s+{DEVICE_NOUN})?\s+"
            rf"(?:(?:per|/|a|in each|in a)\s+{GROUP}|each)"
        ),
    ),
    *sets(
        {"cluster.devices_per_node": whole("v")},
        rf"(?P<v>\d+)\s+(?:(?:ranks|processes|workers)\s+)?(?:per|in each)\s+{GROUP}",
    ),
    *sets(
        {"nodes": whole("n"), "accelerator": accelerator, "cluster.devices_per_node": whole("per")},
        rf"(?P<per>\d+)\s*[x×*]\s*{ACCELERATOR}\s+{GROUP}\s*,?\s*{whole_in('n')}\s+of\s+(?:them|those|these)(?!\s+\w*\s*(?:as\s+)?(?:hot|cold|warm)?\s*spare)",
    ),
    *sets(
        {"cluster.devices_per_node": whole("per"), "accelerator": accelerator},
        rf"(?:(?:all|our|the|each)\s+)*{GROUP}\s+(?:that\s+)?(?:have|has|hold|holds|with|contain|contains)\s+(?:each\s+)?"
        rf"(?P<per>\d{{1,2}})(?P<per_s>){TIMES}{ACCELERATOR}(?:\s+{DEVICE_NOUN})?(?:\s+each)?",
    ),
    *sets(
        {"cluster.devices_per_node": whole("per"), "accelerator": accelerator},
        rf"each(?:\s+(?:one|of\s+(?:them|which)))?\s+(?:has|have|having|with|w/|holds|contains)\s+(?P<per>\d{{1,2}})(?P<per_s>){TIMES}"
        rf"{ACCELERATOR}(?:\s+{DEVICE_NOUN})?",
    ),
    *sets(
        {"cluster.devices": devices("v"), "accelerator": accelerator},
        rf"{whole_in('v')}{_OF_ALL}\d[\d,]*k?\s*{_DEVICES}(?!\s+{GROUP})",
        why="a part of the machine",
    ),
    *sets(
        {"nodes": whole("v"), "accelerator": accelerator},
        rf"{whole_in('v')}{_OF_ALL}\d[\d,]*k?\s*(?:{ACCELERATOR}\s+)?{GROUP}",
        why="a part of the machine",
    ),
    *sets(
        {"cluster.devices": rest("v", "w"), "accelerator": accelerator},
        rf"(?:took|taken|lost|gave|borrowed|reserved|broke)\s+(?:away\s+)?{number_in('v')}{_OF_ALL}"
        rf"{number_in('w')}\s*{_DEVICES}(?!\s+{GROUP})",
        rf"{number_in('v')}{_OF_ALL}{number_in('w')}\s*{_DEVICES}"
        r"\s+(?:are|were|have\s+been|got|went)\s+(?:\w+\s+)?(?:down|gone|taken|lost|broken|busy"
        r"|reserved|away|dead|out)",
        why="what is left of the machine",
    ),
    *sets({"added": devices("v")}, rf"{_ADD}(?:{DEVICE_NOUN}|{ACCELERATOR})?(?!\s+{GROUP})"),
    *sets({"added_nodes": whole("v")}, rf"{_ADD}{GROUP}"),
    *sets({"of_each": devices("v")}, rf"{whole_in('v')}{TIMES}{DEVICE_NOUN}\s+each"),
    *sets(
        {"of_them": whole("v")},
        rf"{whole_in('v')}\s+of\s+(?:them|these|those|either|each|both)",
        rf"(?:on|using|either|rent|buy|need|take|with(?!\s+\d+\s?k\b))\s+{whole_in('v')}(?=\s*(?:$|[?.,;)])|\s+(?:or|vs)\b)(?!\.\d)",
    ),
    *sets(
        {"cluster.measured.all_reduce_gbytes_per_s": gigabytes_per_s},
        rf"(?:(?:nccl|rccl)(?:[\s-]tests?)?\s+)?all[\s_-]?reduce(?:[\s_-]*(?:perf|bus[\s-]?bw|bus\s+bandwidth|bandwidth|bw))*{BE}\s*"
        r"(?:(?:only|just|about|around)\s+)*(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB)(?:/s|ps)(?:\s+bus[\s-]?bw)?(?:\s+(?:in|by|from)\s+(?:nccl|rccl)[\s-]?tests?)?",
        rf"(?:nccl|rccl)(?:[\s-]tests?)?\s+bus[\s-]?(?:bw|bandwidth){BE}\s*(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB)(?:/s|ps)",
        why="bus bandwidth as nccl-tests print it",
    ),
    *sets(
        {"cluster.site_gbytes_per_s": gigabytes_per_s},
        rf"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>[gt]i?b(?:it)?s?)(?:/s|ps)\s+(?:links?\s+|wan\s+|fib(?:er|re)\s+)*(?:in\s+)?between"
        rf"(?!\s+(?:the\s+|our\s+|all\s+)?(?:{GROUP}|{DEVICE_NOUN})\b)"
        rf"(?:\s+(?:them|the|two|both|{SITES}))*",
        why="between one site and the others",
    ),
    *asks(
        "a rate of each device, or of the whole node?",
        rf"{_RATE}\s+(?:in\s+)?between\s+(?:the\s+|our\s+|all\s+)?{GROUP}",
        choices=("cluster.scale_out_gbytes_per_s_per_device", "cluster.scale_out"),
    ),
    *sets({"nvlink": always(False)}, r"(?:without|no)\s+nvlink(?:/nvswitch)?"),
    *sets(
        {"nvlink": always(True)},
        (
            rf"{LINK}(?:(?:with|w/)\s+)?nvlink(?:\s+bridges?)?(?:\s*(?:/|and|\+)\s*nvswitch)?"
            r"(?:\s+(?:inside|within|in)\s+(?:the\s+|a\s+|each\s+)?node)?"
            r"(?!\s*\d*[\s\d.]*[gt]b)"
        ),
    ),
    *sets({"nvlink": always(True)}, rf"{LINK}nvswitch"),
    *sets(
        {"fabric": always("ib")},
        rf"{LINK}(?:infiniband|ib)(?:\s+(?:rdma|network|fabric|networking))*",
    ),
    *sets(
        {"fabric": always("rocev2")},
        rf"{LINK}roce(?:\s?v2)?(?:\s+(?:rdma|ethernet|network|fabric))*",
    ),
    *sets({"fabric": always("slingshot11")}, rf"{LINK}(?:hpe\s+)?slingshot(?:[\s-]?11)?"),
    *sets({"fabric": always("rocev2")}, rf"{LINK}spectrum[\s-]?x"),
    *sets({"fabric": always("omnipath-100")}, rf"{LINK}omni[\s-]?path"),
    *sets({"fabric": always("eth")}, rf"{LINK}(?:tcp\s+)?ethernet(?:\s+tcp)?"),
    *sets(
        {"fabric": prefixed("ib-")},
        rf"{LINK}(?P<v>edr|hdr|ndr|xdr)(?:[\s-]?(?:100|200|400|800)g?b?)?(?:[\s-]*(?:infiniband|ib))?(?:\s+rdma)?",
        rf"{LINK}(?:infiniband|ib)[\s-]+(?P<v>edr|hdr|ndr|xdr)(?:\s+rdma)?",
    ),
    *sets({"fabric": always("efa-v2")}, rf"{LINK}(?:aws\s+)?efa"),
    *sets({"fabric": prefixed("efa-")}, rf"{LINK}(?:aws\s+)?efa[\s-]?(?P<v>v[1-4])"),
    *sets(
        {"fabric": always("ib"), "rate": plain},
        rf"{LINK}(?:infiniband|ib)(?:\s+at|,)?\s+(?P<v>\d+)\s?g",
        rf"{LINK}(?:infiniband|ib)[\s-]+(?P<v>100|200|400|800)(?!\s*(?:x|[a-z]+\d|gpus?|nodes?))",
    ),
    *sets(
        {"fabric": always("rocev2"), "rate": plain},
        rf"{LINK}roce(?:\s?v2)?(?:\s+at|,)?\s+(?P<v>\d+)\s?g",
        rf"{LINK}roce(?:\s?v2)?[\s-]+(?P<v>100|200|400|800)(?!\s*(?:x|[a-z]+\d|gpus?|nodes?))",
    ),
    *sets(
        {"fabric": always("eth"), "rate": plain}, rf"{LINK}ethernet(?:\s+at|,)?\s+(?P<v>\d+)\s?g"
    ),
    *sets({"fabric": always("eth"), "rate": plain}, rf"{LINK}(?P<v>\d+)\s?gbe"),
    *sets(
        {"rate": plain},
        r"(?:an?\s+)?(?P<v>100|200|400|800)\s?G(?:\s+(?:network|fabric|networking))?",
    ),
    *(
        rule
        for kind, name in (
            ("ib", r"infini-?band|ib(?!\s+[enhx]dr\b)"),
            ("rocev2", r"roce(?:\s?v2)?(?:\s+ethernet)?"),
            ("eth", r"(?:tcp\s+)?ethernet(?:\s+tcp)?"),
        )
        for rule in sets(
            {"fabric": always(kind), "rate": plain},
            rf"{LINK}(?P<v>10|25|40|50|100|200|400|800)[\s-]?(?-i:G(?:b(?:it)?(?:/s|ps)?|bE)?|g(?:b(?:it/s|ps|e))?)[\s-]+(?:{name})"
            r"(?:\s+(?:rdma|network|fabric|networking|links?))*",
            rf"{LINK}(?:{name})(?:\s+at|,)?\s+(?P<v>\d+)\s?g",
            rf"{LINK}(?:{name})[\s-]+(?P<v>100|200|400|800)(?!\s*(?:x|[a-z]+\d|gpus?|nodes?))",
        )
    ),
    *sets(
        {"cluster.nics_per_node": whole("n"), "fabric": always("eth"), "rate": plain},
        rf"{whole_in('n')}\s?[x×*]\s?(?P<v>10|25|40|50|100|200|400|800)\s?GbE(?:\s+(?:nics?|ports|links))?"
        r"(?:\s*(?:per|/|a|in each)\s*(?:node|host|server))?",
    ),
    *sets(
        {"no_ib": always(True)},
        r"(?:no|without|not)\s+(?:(?:budget|money|funds|need)\s+for\s+)?(?:infini-?band|ib|rdma)",
    ),
    *sets(
        {"rate_before": gigabytes_per_s_of("w"), "rate_after": gigabytes_per_s_of("v")},
        rf"(?:(?:{WENT}|go(?:es|ing)?|mov(?:e|es|ing)|cut|downgrad(?:e|es|ed|ing)|upgrad(?:e|es|ed|ing))\s+)?"
        rf"(?:from\s+)?(?P<w>\d{{2,3}})\s?(?:G|Gb(?:it)?(?:/s|ps)?)(?:\s+{_NET})?\s*(?:to|->|→)\s*(?P<v>\d{{2,3}})\s?(?:G|Gb(?:it)?(?:/s|ps)?)"
        rf"(?:\s+{_NET})?(?:\s*(?:per|/|a)\s*(?:gpu|device|chip|port|nic))?(?!\w)",
    ),
    *sets(
        {"rate_after": gigabytes_per_s_of("v"), "rate_before": gigabytes_per_s_of("w")},
        rf"(?P<v>\d{{2,3}})\s?(?:G|Gb(?:it)?(?:/s|ps)?)(?:\s+{_NET})?(?:\s*(?:per|/)\s*(?:gpu|port|device|nic))?\s+instead\s+of"
        rf"\s+(?P<w>\d{{2,3}})\s?(?:G|Gb(?:it)?(?:/s|ps)?)(?:\s+{_NET})?(?!\w)",
    ),
    *sets(
        {"rate_before": gigabytes_per_s_of("w"), "rate_after": gigabytes_per_s_of("v")},
        rf"(?:(?:{WENT}|go(?:es|ing)?|mov(?:e|es|ing)|downgrad(?:e|es|ed|ing)|upgrad(?:e|es|ed|ing))\s+)?from\s+(?P<w>\d{{2,3}})"
        rf"\s*(?:to|->|→)\s*(?P<v>\d{{2,3}})\s?(?:G|Gb(?:it)?(?:/s|ps)?)(?:\s+{_NET})?(?:\s*(?:per|/|a)\s*(?:gpu|device|chip|port|nic))?(?!\w)",
    ),
    *asks(
        "in place of which network, and for how long (cluster.scale_out)?",
        r"(?:fails?|drops?|falls?|degrades?)\s+(?:back\s+|down\s+)?to\s+(?:100|200|400|800)\s?G\w*",
        choices=("cluster.scale_out",),
    ),
    *asks(
        "the link between devices of a node is the catalogue's; another rate is stated as "
        "cluster.accelerator: {like: id, link_gbytes_per_s: one direction}",
        r"\d+(?:\.\d+)?\s?[gt]b(?:it)?s?(?:/s|ps)(?:\s+\w+)?\s+nvlink\d?",
        rf"(?:with\s+)?nvlink(?:[\s-]?\d(?:\.0)?)?(?:\s+(?:at|of|bandwidth))*\s*[:=,(]?\s*{_RATE}",
    ),
    *asks(
        "the memory of a chip and its host link are the catalogue's; another rate is stated in "
        "cluster.accelerator: {like: id, ...}",
        rf"(?:hbm\d?\w?|(?:gpu\s+|device\s+)?memory\s+bandwidth|pci-?e)(?:[\s-]*gen\s?\d|[\s-]?\d(?:\.0)?)?"
        rf"(?:\s+(?:at|of|bandwidth))*\s*[:=,(]?\s*{_RATE}",
        rf"{_RATE}\s+(?:of\s+)?(?:hbm\d?\w?|memory\s+bandwidth|pci-?e)",
    ),
    *asks(
        "does the shared store take this much (cluster.storage)? It is no rate of the network",
        rf"(?:(?:on|to|onto|from)\s+)?(?:{_STORE})(?:\s+(?:at|of|is|are|does|gives|takes|delivers|sustains|can|bandwidth"
        r"|throughput|speed|with|to|from|storage|filesystem))*"
        rf"\s*[:=,(]?\s*{_RATE}",
        rf"{_RATE}\s+(?:of\s+|to\s+|for\s+)?(?:the\s+|our\s+)?(?:{_STORE})(?:\s+(?:bandwidth|throughput|speed))?",
        choices=("cluster.storage",),
    ),
    *sets(
        {"cluster.scale_up_domain": whole("v")},
        (
            r"(?:nvlink|scale[\s-]up)\s+domains?\s+of\s+(?P<v>\d+)(?:\s+"
            r"(?:gpus?|devices?))?"
        ),
    ),
    *asks(
        "bits (Gb/s) or bytes (GB/s)?",
        (
            r"(?:(?i:over|via)\s+)?\d+(?:\.\d+)?\s?[gt]b/s(?:\s*(?:per"
            r"|/|a)\s*(?i:gpu|device|chip|accelerator|node|host|server"
            r"|nic|port|link|rail))?"
        ),
        case=True,
    ),
    *sets(
        {"rate": gigabits, "rate_of": rate_of},
        (
            r"(?:(?i:over|via)\s+)?(?P<v>\d+(?:\.\d+)?)\s?(?P<u>[GgTt]b"
            r"(?:it)?/s|[GgTt]bps|[GT]B/s|[GT]Bps|[GgTt]bits?/s|Gb?(?=[\s-]+"
            r"(?i:ib|infiniband|roce|ethernet|efa|[ehnx]dr)))(?:\s*(?:per"
            r"|/|a)\s*(?P<of>(?i:gpu|device|chip|accelerator|node|host"
            r"|server|nic|port|link|rail)))?"
        ),
        case=True,
    ),
    *sets(
        {"rate_of": rate_of},
        (
            r"(?:per|each|every)\s+(?P<of>gpu|device|chip|accelerator"
            r"|node|host|server|nic|port|link|rail)"
        ),
    ),
    *sets(
        {"cluster.nics_per_node": whole("n"), "rate": plain},
        rf"{whole_in('n')}\s?[x×*]\s?(?P<v>100|200|400|800)\s?G(?:b(?:it)?(?:/s|ps)?|bps|be)?"
        r"(?:\s+(?:nics?|ports|links|hcas?|rails|cx-?\d|connectx-?\d))?"
        r"(?:\s*(?:per|/|a|in each)\s*(?:node|host|server))?",
        rf"{whole_in('n')}\s+(?P<v>100|200|400|800)\s?G(?:b(?:it)?(?:/s|ps)?|bps|be)?"
        r"\s+(?:nics?|ports|hcas?|rails)(?:\s*(?:per|/|a|in each)\s*(?:node|host|server))?",
    ),
    *sets(
        {"cluster.nics_per_node": whole("n")},
        rf"(?:nics?|hcas?)\s*[,(:]?\s*{whole_in('n')}\s+(?:of\s+them\s+)?(?:per|a|in\s+each|on\s+each)\s*{GROUP}\)?",
    ),
    *sets(
        {"cluster.nics_per_node": whole("n"), "rate": plain},
        r"(?P<v>100|200|400|800)\s?G(?:b(?:it)?(?:/s|ps)?|bps|be)?\s+(?:nics?|ports|hcas?|rails)\s*[,(:]?\s*"
        rf"{whole_in('n')}\s+(?:of\s+them\s+)?(?:per|a|in\s+each|each|on\s+each)\s*{GROUP}\)?",
    ),
    *sets(
        {"cluster.nics_per_node": whole("v")},
        (
            r"(?P<v>\d+)\s*[x×]?\s*(?:nics?|ports|hcas?|rails)(?:\s+"
            r"(?:per|/|a|in each)\s*(?:node|host|server))?"
        ),
    ),
    *sets(
        {"cluster.nics_per_node": whole("n"), "fabric": prefixed("ib-")},
        r"(?P<v>[ehnx]dr)(?:[\s-]?(?:100|200|400|800)g?)?\s*[x×*]\s*(?P<n>\d{1,2})(?P<n_s>)(?:\s*(?:per|/|a|in\s+each)\s*(?:node|host|server))",
        r"(?P<n>\d+)(?P<n_s>)\s*[x×]?\s*(?:(?:ib|infiniband|mellanox)\s+)?(?P<v>[ehnx]dr)\s+"
        r"(?:(?:ib|infiniband)\s+)?(?:nics?|ports|hcas?|rails|links)"
        r"(?:\s*(?:per|/|a|in each)\s*(?:node|host|server))?",
        r"(?P<n>\d+)(?P<n_s>)\s*[x×]?\s*(?P<v>[ehnx]dr)(?:\s+(?:ib|infiniband))?\s*(?:per|/|a|in\seach)\s*(?:node|host|server)",
    ),
    *sets(
        {"cluster.oversubscription": plain},
        (
            r"(?P<v>\d+(?:\.\d+)?)\s*(?::|to)\s*1\s+(?:over-?subscri"
            r"(?:bed|ption)|blocking|taper(?:ed)?)"
        ),
        r"(?P<v>\d(?:\.\d+)?)\s*:\s*1(?=\s+(?:fine|ok(?:ay)?|enough|good|spines?|leaf|leaves|fabric|network|fat-tree)\b)",
        r"1\s*(?::|to)\s*(?P<v>\d+(?:\.\d+)?)\s+(?:over-?subscri(?:bed|ption)|blocking|taper(?:ed)?)",
    ),
    *sets(
        {"cluster.oversubscription": plain},
        (
            r"(?:over-?subscri(?:ption|bed)|taper(?:ed)?)(?:\s+(?:of|ratio|by|at))*\s*[:=]?\s*(?P<v>\d+"
            r"(?:\.\d+)?)(?:\s*:\s*1)?"
        ),
    ),
    *sets(
        {"cluster.oversubscription": always(1.0)},
        (
            r"non[\s-]?blocking(?:\s+(?:network|fabric|fat[\s-]tree))?|full[\s-]bisection"
            r"(?:\s+bandwidth)?|(?:no|without)\s+over-?subscription"
        ),
    ),
    *sets(
        {"cluster.pod_devices": devices("v")}, rf"pods?\s+of\s+{whole_in('v')}(?:\s+{DEVICE_NOUN})?"
    ),
    *sets({"cluster.sites": whole("v")}, rf"(?P<v>\d+)\s+{SITES}"),
    *sets(
        {"cluster.site_rtt_ms": plain},
        rf"(?:rtt|round[\s-]trip(?:\s+time)?|ping|wan\s+latency){BE}\s*(?:about\s+)?(?P<v>\d+(?:\.\d+)?)\s?ms",
        r"(?P<v>\d+(?:\.\d+)?)\s?ms\s+(?:(?:of\s+)?(?:wan\s+)?(?:rtt|round[\s-]trip(?:\s+time)?|ping)|apart|away|latency\s+(?:in\s+)?between)"
        rf"(?:\s+(?:from\s+each\s+other|in\s+between|between))?(?:\s+(?:them|the|two|both|{SITES}))*",
        why="a time between sites is that of the round trip",
    ),
    *sets(
        {"job.sync.kind": always("local-steps")},
        r"(?:open-?|streaming\s+)?diloco(?:\s+(?:style|training))?|local[\s-]sgd",
        why="weights averaged after local steps",
    ),
    *sets(
        {"job.sync.local_steps": whole("v")},
        r"(?:every\s+|h\s*=\s*)?(?P<v>\d+)(?P<v_s>)\s+(?:local|inner)[\s-]steps",
        r"h\s*=\s*(?P<v>\d+)(?P<v_s>)",
        r"(?<=diloco\s)(?:with\s+|syncs?\s+)?every\s+(?P<v>\d+)(?P<v_s>)\s+steps",
        rf"(?:local|inner)[\s_-]steps{BE}\s*(?P<v>\d+)(?P<v_s>)",
    ),
    *sets(
        {"host_gb_each": gigabytes},
        r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:host\s+|system\s+|cpu\s+|main\s+)(?:memory|ram|dram)\s*"
        rf"(?:per|/|for\s+each|for\s+every)\s*{DEVICE_NOUN}",
    ),
    *sets(
        {"cluster.host_memory_gb": gigabytes},
        (
            r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:host\s+"
            r"|system\s+|cpu\s+)?(?:memory|ram|dram)\s*(?:per|/|a|in each|each)\s*"
            r"(?:node|host|server|machine)"
        ),
        (
            r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:(?:host|system|cpu|main|server)\s+"
            r"(?:memory|ram|dram)|ram|dram)(?:\s+(?:each|per\s+machine))?"
        ),
        (
            r"(?:host|system|cpu)\s+(?:memory|ram)\s*(?:of|:|="
            r"|is)?\s*(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)"
        ),
    ),
    *sets(
        {"cluster.nvme_gb": gigabytes},
        (
            r"(?P<v>\d+(?:\.\d+)?)\s?(?P<u>GB|TB)\s+(?:of\s+)?(?:local\s+)?nvme"
            r"(?:\s+(?:storage|ssds?))?(?:\s*(?:per|/|a|in each|each)\s*(?:node"
            r"|host|server)|\s+each(?:\s+node)?)?"
        ),
    ),
    *sets(
        {"cluster.storage": word},
        rf"(?:(?:on|to|onto|into|from|with|via)\s+)?(?:shared\s+|aws\s+)?(?P<v>{STORAGE})"
        r"(?:\s+(?:storage|buckets?|shares?|file\s?systems?))?",
    ),
)
