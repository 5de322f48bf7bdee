"""Texts of generated primary-school word problems, each under the equation that answers it.

All texts are our own. `COUNTED` problems count things, so their numbers are whole; `MEASURED` problems are about money,
distances, weights and times, and may have decimals; `BARE` problems are arithmetic without a story.
"""

Texts = dict[str, tuple[str, ...]]

_NOW = "[now|in all|in total|altogether|]"
_ALL = "[in all|altogether|in total|all together|]"
_HAVE = "[has|owns|keeps|collected|found|bought|picked|counted]"
_HAD = "[had|owned|bought|found|picked|collected|started with|began the {day} with]"
_GOT = "[got|bought|found|received|was given|picked up|collected]"
_GAVE = "[gave|handed|sold|sent|lent]"
_LOST = "[lost|gave away|sold|used|threw away|dropped|broke]"
_LEFT = "[left|remaining|still there]"
_OWNS_NOW = (
    f"[How many {{xs}} does {{N}} have {_NOW}?|What is the number of {{xs}} that {{N}} has now?"
    "|Find how many {xs} {he} has now.|How many {xs} are there now?]"
)
_REMAIN = (
    "[How many {xs} does {N} have left?|How many {xs} are left?|How many does {he} still have?|How many {xs} remain?"
    "|How many {xs} does {he} have now?|How many {xs} did {he} have in the end?]"
)
_TOGETHER = (
    f"[How many {{xs}} do they have {_ALL}?|How many {{xs}} do {{N}} and {{M}} have {_ALL}?|What is the total number of {{xs}}?"
    "|How many {xs} are there together?|Find the number of {xs} they have in total.]"
)

COUNTED: Texts = {
    "a+b": (
        f"{{N}} {_HAD} {{a}} {{xs}}. [Then|Later|After that|] {{he}} {_GOT} {{b}} [more|others|more of them|more {{xs}}]. {_OWNS_NOW}",
        f"{{N}} {_HAD} {{a}} {{xs}}. {{M}} {_GAVE} {{him}} {{b}} [more|more {{xs}}|of {{mhis}} {{xs}}]. {_OWNS_NOW}",
        f"{{N}} [has|had] {{a}} {{xs}} [and {{his}} {{kin}} gave {{him}} {{b}} more|, and {{he}} finds {{b}} more in the {{place}}]. {_OWNS_NOW}",
        f"{{N}} {_HAVE} {{a}} {{xs}} and {{M}} {_HAVE} {{b}} {{xs}}. {_TOGETHER}",
        f"{{N}} {_HAVE} {{a}} {{xs}}. {{M}} {_HAVE} {{b}}[ {{xs}}|]. {_TOGETHER}",
        "There are {a} {xs} in the {place}[ and {b} on the table|, and {b} more in the bag]. "
        f"How many {{xs}} are there {_ALL}?",
        "There are {a} {us} and {b} {vs} in the {place}. How many {kind} are [there in all|in the {place}|there]?",
        "There [are|were] {a} {xs} in the {place}. [{N} puts|{N} placed|{N} will put|The workers bring] {b} more {xs} [there|in it]. "
        "How many {xs} [are there now|will there be|are now in the {place}]?",
        "The {firm} sold {a} {us} and {b} {vs} [on {day}|today|last week|]. How many {kind} did it sell [in all|in total|]?",
        "A {worker} [used|sold|made] {a} {xs} in the morning and {b} in the afternoon. How many {xs} were there that day?",
        "{N} [made|baked|drew|read|wrote] {a} {xs} on {day} and {b} on {later}. [How many {xs} is that in all|How many were there on both days]?",
        "{N} has {a} {xs}. {M} has {b} more {xs} than {N}. How many {xs} does {M} have?",
        "{N} has {a} {xs}. {M} has {b} more than {him}. [How many does {M} have|How many {xs} has {M}]?",
        "{N} [has|bought|found|saw] {a} {color} {xs} and {b} {hue} {xs}. How many {xs} [does {he} have|is that] [altogether|in all|]?",
        "After {N} [gave|sold|lent] {a} {xs} to {M}, {he} [had|still had] {b} {xs} left. How many {xs} did {N} have [at first|at the start|in the beginning|before]?",
        "{N} [ate|lost|used] {a} of {his} {xs}. Now {he} has {b} {xs}. How many {xs} [did {he} start with|were there to begin with|did {he} have before]?",
        "Some {xs} were in the {place}. {N} took {a} of them and {b} were left. How many {xs} were there [at first|before|to start with]?",
        "{a} {xs} were [sold|used|taken] and {b} are still there. How many {xs} were there before?",
        "[If|When] there are {a} {us} and {b} {vs}, how many {kind} are there?",
        "How many {xs} does {N} have if {he} [got|bought|found] {a} on {day} and {b} on {later}?",
        "The class has {a} boys and {b} girls. How many [students|children] [are in the class|are there|does it have]?",
        "{N} scored {a} points in the first [half|game|round] and {b} points in the second. How many points did {he} score [in total|altogether|]?",
        "{N} invited {a} {kids} to the party, and {M} invited {b}. How many {kids} were invited?",
        "The tree had {a} {xs} on one branch and {b} on another. What is the number of {xs} on both branches?",
    ),
    "a-b": (
        f"{{N}} {_HAD} {{a}} {{xs}}. [Then|Later|But|] {{he}} {_LOST} {{b}} [of them|{{xs}}|of the {{xs}}]. {_REMAIN}",
        f"{{N}} {_HAD} {{a}} {{xs}}. {{he}} [gave|sold|lent] {{b}} [of them|{{xs}}|] to [{{M}}|{{his}} {{kin}}]. {_REMAIN}",
        f"{{N}} [has|had] {{a}} {{xs}}. {{M}} [took|borrowed|bought|ate] {{b}} [of them|of {{N}}'s {{xs}}|]. {_REMAIN}",
        f"There were {{a}} {{xs}} in the {{place}}. {{N}} [took|ate|removed|used] {{b}} [of them|{{xs}}]. How many {{xs}} [are {_LEFT}|were left|are in the {{place}} now]?",
        "There were {a} {kids} in the {place}. {b} of them [left|went home|walked away]. How many {kids} [stayed|were left|are still there]?",
        "{N} has {a} {xs} and {M} has {b} {xs}. How many more {xs} does {N} have [than {M}|]?",
        "{N} [found|has|picked] {a} {xs}. {M} [found|has|picked] {b}. [How many more does {N} have|By how many does {N} have more than {M}|What is the difference]?",
        "{N} has {a} {xs}. {M} has {b} fewer {xs} than {N}. How many {xs} does {M} have?",
        "There are {a} {us} and {b} {vs} in the {place}. How many [more {us} than {vs}|fewer {vs} than {us}] are there?",
        "Of [the|] {a} {kind} in the {place}, {b} are {us}[ and the rest are {vs}|, the others are {vs}]. How many {vs} are there?",
        "{N} has {a} {xs}. {b} of them are {color} and the [rest|others] are {hue}. How many [{hue} {xs} are there|are {hue}]?",
        "{N} [wants|needs|has to get|would like] {a} {xs}. {he} [already has|has] {b}. How many more [{xs} does {he} need|does {he} need|must {he} get]?",
        "{N} had {b} {xs}. {he} got some more and now {he} has {a}. How many {xs} did {he} get?",
        "{N} had {b} {xs}. After {M} gave {him} some [more|], {he} had {a}. How many did {M} give {him}?",
        "There were {b} {xs} in the {place}. {N} [added|brought|put in] some more. Now there are {a}. How many {xs} did {N} [add|bring|put in]?",
        "{N} had {a} {xs}. {he} [gave|sold] some to {M} and had {b} left. How many {xs} did {M} get?",
        "{N} had {a} {xs} but {he} lost some. {he} has {b} now. How many [{xs} did {he} lose|were lost]?",
        "{N} has read {b} pages of a book that has {a} pages. How many pages [are left|does {he} still have to read|must {he} still read]?",
        "The {firm} had {a} {xs}. It sold {b}. [How many {xs} does it have left|How many does it still have to sell]?",
        "If {N} has {a} {xs} and uses {b}, how many [are left|{xs} will {he} have left|remain]?",
        "How many {xs} are left if {N} had {a} and {M} took {b}?",
        "{N} is {a} years old. {M} is {b} years younger. How old is {M}?",
        "{N} and {M} have {a} {xs} together. {b} of them belong to {N}. How many belong to {M}?",
        "A {worker} made {a} {xs} and sold {b} of them. How many {xs} [does the {worker} still have|were not sold|are left over]?",
        "{a} {kids} signed up, but only {b} came. How many {kids} did not come?",
    ),
    "a*b": (
        "{N} has {b} {boxes} of {xs}. [Each {box} holds {a} {xs}|There are {a} {xs} in each {box}|Each {box} has {a}|Every {box} contains {a} {xs}]. How many {xs} does {N} have [in all|in total|altogether|]?",
        "There are {a} {xs} in each {box}. How many {xs} are [in|there in] {b} {boxes}?",
        "{N} [bought|filled|has|packed] {b} {boxes} with {a} {xs} in each. [How many {xs} did {he} get|How many {xs} is that|How many {xs} are there] [in all|altogether|]?",
        "[If|Suppose] each {kid} gets {a} {xs}, how many {xs} do {b} {kids} get?",
        "{N} gives {a} {xs} to each of {his} {b} {kids}. How many {xs} does {he} [give away|need] [in all|]?",
        "Each of {b} {kids} has {a} {xs}. How many {xs} do they have [in all|together|altogether]?",
        "{N} [reads|makes|sells|uses|eats] {a} {xs} [a day|every day|each day]. How many {xs} is that in {b} days?",
        "A {worker} needs {a} {xs} for one {box}. How many {xs} [are needed|does the {worker} need] for {b} {boxes}?",
        "{N} has {a} {xs}. {M} has {b} times as many. How many {xs} does {M} have?",
        "The {place} has {b} rows of {xs} with {a} in each row. How many {xs} are [in the {place}|there]?",
        "{N} put {a} {xs} on each of {b} {boxes}. How many {xs} did {he} [use|put out] [in all|]?",
        "One pack has {a} {xs}. How many {xs} are in {b} packs?",
        "There are {b} {kids} and each needs {a} {xs}. How many {xs} are needed?",
        "How many {xs} does {N} need to [fill|make] {b} {boxes} if each takes {a}?",
        "{N} plants {b} rows of {xs}. If there are {a} in a row, how many {xs} does {he} plant?",
        "Each {box} on the farm [holds|has] {a} {xs}. The farmer has {b} {boxes}. Find the number of {xs}.",
    ),
    "a/b": (
        "{N} [shares|shared|splits|divided] {a} {xs} [equally|evenly|] among {b} {kids}. How many {xs} does each {kid} get?",
        "{N} has {a} {xs}. {he} [puts|sorts|packs|places] them [equally|evenly] into {b} {boxes}. How many {xs} are in each {box}?",
        "{a} {xs} are [split|divided|shared] [equally|evenly] among {b} {kids}. How many {xs} [does each get|will each {kid} get|are there for each]?",
        "There are {a} {xs} in {b} {boxes}[, the same number in each|]. How many {xs} are in [each|one] {box}?",
        "{b} {boxes} hold {a} {xs}. How many {xs} does one {box} hold?",
        "{N} [read|made|sold|used] {a} {xs} in {b} days, the same number each day. How many [{xs} was that a day|was that every day|per day]?",
        "{N} has {a} {xs}, which is {b} times as many as {M} has. How many {xs} does {M} have?",
        "If {b} {kids} [share|divide] {a} {xs} [equally|so that each gets the same], how many {xs} will each {kid} have?",
        "{N} wants to give {a} {xs} to {his} {b} {kids}. If everyone gets the same number, how many does each receive?",
        "The {kids} planted {a} {xs} in {b} equal rows. How many {xs} are in each row?",
        "A {worker} packed {a} {xs} into {b} {boxes} with the same number in each. How many went into each {box}?",
        "There are {a} students in {b} classes of the same size. How many students are in a class?",
    ),
    "a:b": (
        "{N} has {a} {xs}. {he} [puts|packs|places] {b} in each {box}. How many {boxes} [does {he} need|does {he} fill|are there]?",
        "[There are {a} {xs}|{N} bought {a} {xs}] and each {box} [holds|fits] {b}. How many {boxes} [are needed|will be filled]?",
        "{a} {xs} are packed in {boxes} of {b}. How many {boxes} are there?",
        "{N} gave {b} {xs} to each {kid} and gave away {a} {xs}. How many {kids} [were there|got some]?",
        "{N} [reads|makes|uses|sells] {b} {xs} a day. How many days [does {he} need for {a} {xs}|do {a} {xs} last|will it take until {he} has {a}]?",
        "How many {boxes} of {b} {xs} can {N} make with {a} {xs}?",
        "A {box} [holds|takes] {b} {xs}. How many {boxes} does {N} need for {a} {xs}?",
        "The teacher divides {a} students into groups of {b}. How many groups are there?",
        "[If|When] {b} {kids} fit in one car, how many cars are needed for {a} {kids}?",
        "{xs} come in packs of {b}. How many packs must {N} buy to have {a} {xs}?",
        "Each {kid} needs {b} {xs}. There are {a} {xs}. For how many {kids} is that enough?",
    ),
    "a+b+c": (
        f"{{N}} has {{a}} {{xs}}, {{M}} has {{b}} {{xs}} and {{O}} has {{c}} {{xs}}. How many {{xs}} do they have {_ALL}?",
        f"{{N}} {_HAD} {{a}} {{xs}}. {{M}} gave {{him}} {{b}} and {{O}} gave {{him}} {{c}}. {_OWNS_NOW}",
        f"{{N}} {_HAD} {{a}} {{xs}}. {{his}} {{kin}} gave {{him}} {{b}} more and {{his}} {{kins}} gave {{him}} {{c}} more. {_OWNS_NOW}",
        "There are {a} {xs} in the first {box}, {b} in the second and {c} in the third. How many {xs} are there [in all|]?",
        "{N} [sold|made|read] {a} {xs} on {day}, {b} on {later} and {c} [the day after|on Sunday|the next day]. How many {xs} is that in all?",
        "There are {a} {us} and {b} {vs} in the {place}. {N} brings {c} more {us}. How many {kind} are there now?",
        f"{{N}} [picked|found] {{a}} {{xs}} and {{M}} {{b}}. {{O}} [picked|found] {{c}}. How many {{xs}} do they have {_ALL}?",
        "{N} has {a} {color} {xs}, {b} {hue} {xs} and {c} small {xs}. What is the total number of {xs}?",
    ),
    "a+b-c": (
        "A pond had {a} frogs and {b} ducks. In autumn {c} of the animals went away. How many animals stayed?",
        f"{{N}} {_HAD} {{a}} {{xs}}. {{he}} {_GOT} {{b}} more and then {_LOST} {{c}}. {_REMAIN}",
        "{N} has {a} {xs} and {M} has {b}. They [give away|use|sell|eat] {c} of them. How many {xs} [do they have left|are left]?",
        "{N} [picked|baked|made] {a} {us} and {b} {vs}. {he} [sold|gave away|used] {c} of the {kind}. How many {kind} [are left|does {he} have left|were left]?",
        "There are {a} {us} and {b} {vs} in the {place}. {c} of the {kind} [are taken away|leave|are sold]. How many {kind} [are left|stay]?",
        "The {firm} had {a} {xs} and bought {b} more. After it sold {c}, how many {xs} [were left|did it have]?",
        "{N} needs {c} fewer {xs} than {M} and {O} together. {M} has {a} and {O} has {b}. How many does {N} need?",
        "There were {a} {kids} on the bus. {b} more got on and {c} got off. How many {kids} are on the bus now?",
    ),
    "a-b+c": (
        f"{{N}} {_HAD} {{a}} {{xs}}. {{he}} {_LOST} {{b}} and then {_GOT} {{c}} more. {_OWNS_NOW}",
        "There were {a} {kids} on the bus. At the stop {b} got off and {c} got on. How many {kids} are on the bus now?",
        "The {firm} had {a} {xs}. It sold {b} [of them|] and [then|later] [bought|ordered|made] {c} [new ones|more]. How many {xs} does it have now?",
        f"{{N}} had {{a}} {{xs}}. {{he}} gave {{b}} to {{M}}, and {{O}} gave {{him}} {{c}}. {_OWNS_NOW}",
        "If {N} had {a} {xs}, [sold|used|ate|lost] {b} and bought {c} more, how many {xs} would {he} have?",
        "{a} birds sat in a tree. {b} flew away and {c} came. How many birds are in the tree now?",
    ),
    "a-b-c": (
        f"{{N}} {_HAD} {{a}} {{xs}}. {{he}} gave {{b}} to {{M}} and {{c}} to {{O}}. {_REMAIN}",
        f"{{N}} {_HAD} {{a}} {{xs}}. {{he}} {_LOST} {{b}} on {{day}} and {{c}} on {{later}}. {_REMAIN}",
        "The {firm} had {a} {xs}. It sold {b} in the morning and {c} in the afternoon. How many {xs} [are left|does it still have|remained]?",
        "There are {a} {xs} in the {place}. {b} are {color}, {c} are {hue} and the rest are [striped|plain]. How many are neither {color} nor {hue}?",
        "{N} wants to read a book of {a} pages. {he} read {b} pages on {day} and {c} on {later}. How many pages are left?",
    ),
    "(a+b)*c": (
        "There are {c} {boxes} with {a} {us} and {b} {vs} in each. How many {kind} are there [in all|altogether|]?",
        "Each {box} has {a} {us} and {b} {vs}. How many {kind} are in {c} {boxes}?",
        "{N} [makes|packs] {c} {boxes}. [Each|Every one] gets {a} {us} and {b} {vs}. How many {kind} does {he} need?",
        "{N} has {a} {us} and {M} has {b} {vs}. They put {c} stickers on each. How many stickers did they use?",
        "{a} {kids} and {b} adults get {c} {xs} each. How many {xs} are needed?",
        "{N} [read|did|solved] {a} pages in the morning and {b} in the evening, with {c} problems on each page. How many problems did {he} see?",
    ),
    "(a-b)*c": (
        "A house has {a} windows. {N} cleaned all but {b}, and used {c} cloths for each. How many cloths did {he} use?",
        "{N} had {a} {boxes} with {c} {xs} in each. {he} gave away {b} {boxes}. How many {xs} does {he} still have?",
        "There were {a} {kids}, but {b} left. Each of the others gets {c} {xs}. How many {xs} are needed?",
        "Of {a} {boxes}, {b} are empty. Each of the others holds {c} {xs}. How many {xs} are there?",
    ),
    "(a+b)/c": (
        "{N} has {a} {us} and {b} {vs}. {he} [puts|packs] the {kind} into {c} {boxes} with the same number in each. How many are in each {box}?",
        "{N} found {a} {xs} and {M} found {b}. They [share|split] them equally among {c} {kids}. How many does each {kid} get?",
        "{a} {us} and {b} {vs} are put into {c} equal groups. How many {kind} are in each group?",
        "There are {a} boys and {b} girls in {c} teams of the same size. How many children are on each team?",
    ),
    "(a+b):c": (
        "A ferry takes {c} cars at a time. {a} cars wait on the left and {b} on the right. How many trips does it make?",
        "{N} writes {c} words on a line. A poem has {a} words and a song has {b}. How many lines does {he} need for both?",
        "{N} has {a} {us} and {b} {vs}. {he} puts {c} of the {kind} in each {box}. How many {boxes} [does {he} need|does {he} fill]?",
        "{a} boys and {b} girls [ride|go|drive] in cars that hold {c}. How many cars do they need?",
        "{N} bought {a} {xs} and already had {b}. A {box} holds {c} {xs}. How many {boxes} [will {he} fill|does {he} need|can {he} fill]?",
    ),
    "(a-b)/c": (
        "A train has {a} seats. {b} are in the first car and the others in {c} cars of the same size. How many seats does each of these have?",
        "{N} had {a} {xs}. {he} [kept|ate|lost|sold] {b} and [shared|split] the rest [equally|evenly] among {c} {kids}. How many {xs} did each {kid} get?",
        "A {worker} made {a} {xs}, sold {b} and packed the others into {c} {boxes} with the same number in each. How many went into each {box}?",
    ),
    "(a-b):c": (
        "{N} had {a} {xs}. {he} [used|lost|sold|gave away] {b}. {he} puts the rest in {boxes} of {c}. How many {boxes} [does {he} need|are there]?",
        "Of {a} students, {b} [stayed home|were sick]. The others make groups of {c}. How many groups are there?",
        "A {worker} had {a} {xs} and threw away {b}. Each {box} takes {c} of the others. How many {boxes} can be filled?",
    ),
    "a*b+c": (
        "{N} has {b} {boxes} of {a} {xs} and {c} [more|loose {xs}|single ones]. How many {xs} does {he} have [in all|]?",
        "There are {b} {boxes} with {a} {xs} each and {c} {xs} on the floor. How many {xs} are there [in total|]?",
        "{N} [bought|filled] {b} {boxes} of {a} {xs}. {M} gave {him} {c} more. How many {xs} does {N} have?",
    ),
    "a*b-c": (
        "{N} has {b} {boxes} of {a} {xs}. {he} [uses|eats|sells|gives away] {c}. How many {xs} are left?",
        "{N} bought {b} {boxes} with {a} {xs} in each. If {c} of the {xs} [broke|were bad|got lost], how many {xs} [are good|are left|does {he} have]?",
        "Each of {b} {kids} brought {a} {xs}. They used {c}. How many {xs} are left?",
    ),
    "a-b*c": (
        "{N} had {a} {xs}. {he} gave {b} to each of {c} {kids}. How many {xs} [are left|does {he} still have]?",
        "{N} had {a} {xs} and filled {c} {boxes} with {b} each. How many {xs} are left over?",
        "{N} wants {a} {xs}. {he} has {c} {boxes} of {b}. How many more does {he} need?",
    ),
    "a*b/c": (
        "{c} {boxes} hold {a} {xs}. How many {xs} do {b} {boxes} hold?",
        "{N} makes {a} {xs} in {c} hours. How many does {he} make in {b} hours?",
    ),
    "a*b*c": (
        "There are {c} {boxes}. Each has {b} bags with {a} {xs} in each bag. How many {xs} are there?",
        "{N} [reads|sells|uses] {a} {xs} a day, {b} days a week. How many is that in {c} weeks?",
    ),
    "a*b+c*d": (
        "{N} has {b} {boxes} of {a} {us} and {d} {boxes} of {c} {vs}. How many {kind} does {he} have?",
        "There are {b} bags with {a} {xs} and {d} bags with {c} {xs}. How many {xs} are there [in all|]?",
    ),
}

MEASURED: Texts = {
    "a+b": (
        "{N} [spent|paid] ${a} [on|for] {good} and ${b} [on|for] {ware}. How much [money did {he} spend|did {he} pay|did it cost] [in all|in total|altogether|]?",
        "{N} had ${a}. {he} [earned|got|found|was given] ${b} [by {job}|more]. How much money does {he} have now?",
        "{N} bought {good} for {a} dollars and {ware} for {b} dollars. [What was the total cost|How many dollars did {he} spend]?",
        "{N} [walked|ran|biked|drove] {a} {miles} on {day} and {b} {miles} on {later}. How [far is that|many {miles} is that] [in all|altogether|]?",
        "{N} used {a} {pounds} of {stuff} [on {day}|in the morning] and {b} {pounds} [on {later}|in the evening]. How many {pounds} did {he} use [in all|]?",
        "A {worker} bought {a} {pounds} of {stuff} and {b} {pounds} of salt. How many {pounds} is that [together|in all]?",
        "It rained {a} inches on {day} and {b} inches on {later}. How much did it rain on both days?",
        "One rope is {a} {miles} long, and another is {b} {miles} longer. How long is the other rope?",
        "The {worker} had {a} {pounds} of {stuff} and added {b} more. How many {pounds} are there now?",
        "After spending ${a} on {good}, {N} had ${b} left. How much money did {he} have at first?",
    ),
    "a-b": (
        "{N} had ${a}. {he} [spent|paid] ${b} [on|for] {good}. How much money [does {he} have left|is left|did {he} have then]?",
        "{N} bought {good} for ${b} and paid with ${a}. How much change [did {he} get|does {he} get back|is that]?",
        "{good} costs ${a}, but {ware} costs only ${b}. How much more does the first cost?",
        "{N} [wants|would like] to buy {good} that costs ${a}. {he} has ${b}. How much more money does {he} need?",
        "{N} [ran|biked|drove] {a} {miles} and {M} {b} {miles}. How much farther did {N} go?",
        "There were {a} {pounds} of {stuff}. {N} used {b}. [How many {pounds} are left|How much is left]?",
        "A board was {a} {miles} long. {N} cut off {b} {miles}. How long is the rest?",
        "{N} is going {a} {miles}. {he} has gone {b}. How many {miles} are left?",
        "The bag weighed {a} pounds, and after {N} took something out it weighed {b} pounds. What did {he} take out weigh?",
        "The temperature was {a} degrees and fell by {b} degrees. What is it now?",
        "{N} spent a total of ${a} on {good} and {ware}. If {good} cost ${b}, how much was {ware}?",
    ),
    "a*b": (
        "One {x} costs ${a}. How much do {b} {xs} cost?",
        "{N} bought {b} {xs} [for|at] ${a} each. How much [did {he} pay|did {he} spend|money did {he} need] [in all|]?",
        "{N} earns ${a} an hour {job}. How much does {he} earn in {b} hours?",
        "{N} [drives|rides|goes] {a} {miles} an hour. How [far|many {miles}] does {he} [get|go] in {b} hours?",
        "{N} [runs|walks] {a} {miles} every day. How many {miles} is that in {b} days?",
        "A car goes {a} miles on a gallon of gas. How far does it go on {b} gallons?",
        "Each {box} weighs {a} pounds. How much do {b} {boxes} weigh?",
        "{N} needs {a} {pounds} of {stuff} for one [cake|batch|meal]. How many {pounds} does {he} need for {b}?",
        "A ticket costs {a} dollars. How much do {b} {kids} pay?",
        "{N} saves ${a} [a week|every week|each week]. How much has {he} saved after {b} weeks?",
        "A room is {b} feet wide and {a} feet long. What is its area?",
    ),
    "a/b": (
        "{b} {xs} cost ${a}. How much does one {x} cost?",
        "{N} paid ${a} for {b} {xs}. [What did each cost|How much was each {x}|What is the price of one]?",
        "{N} earned ${a} in {b} hours {job}. How much did {he} earn an hour?",
        "{N} went {a} {miles} in {b} hours. How many {miles} did {he} go [an hour|each hour|per hour]?",
        "{b} {kids} share a bill of ${a} equally. How much does each pay?",
        "{N} cut a rope of {a} {miles} into {b} equal pieces. How long is each piece?",
        "{N} pours {a} {pounds} of {stuff} evenly into {b} {boxes}. How many {pounds} are in each {box}?",
    ),
    "a:b": (
        "{N} has ${a}. One {x} costs ${b}. How many {xs} can {he} buy?",
        "{xs} cost ${b} each. {N} spent ${a}. How many {xs} did {he} [buy|get]?",
        "How many {x} packs can {N} buy with {a} dollars if one costs {b} dollars?",
        "{N} [walks|runs|rides] {b} {miles} an hour. How many hours does {he} need for {a} {miles}?",
        "{N} earned ${a}. {he} got ${b} for each hour of {job}. How many hours did {he} work?",
        "A jar holds {b} {pounds} of {stuff}. How many jars are needed for {a} {pounds}?",
        "{N} saves ${b} a week. In how many weeks will {he} have ${a}?",
    ),
    "a+b+c": (
        "{N} [spent|paid] ${a} [on|for] {good}, ${b} [on|for] {ware} and ${c} [on|for] a drink. How much is that [in all|altogether|]?",
        "{N} bought {good} for ${a}, {ware} for ${b} and a snack for ${c}. What was the total?",
        "{N} [walked|ran] {a} {miles} on {day}, {b} on {later} and {c} on the last day. How many {miles} is that in all?",
    ),
    "a+b-c": (
        "{N} had ${a}. {he} [earned|got] ${b} {job} and spent ${c} on {good}. How much money does {he} have now?",
        "{N} has ${a} and {M} has ${b}. They buy {good} for ${c}. How much do they have left?",
        "{N} got ${a} from {his} {kin} and ${b} from {his} {kins}. {he} spent ${c}. How much is left?",
    ),
    "a-b-c": (
        "{N} had ${a}. {he} spent ${b} on {good} and ${c} on {ware}. How much [money does {he} have left|is left]?",
        "{N} wants {good} that costs ${a}. {he} has saved ${b} and {his} {kin} gave {him} ${c}. How much does {he} still need?",
    ),
    "a-b+c": (
        "{N} had ${a}. {he} spent ${b} on {good} and then earned ${c} {job}. How much money does {he} have now?",
    ),
    "(a+b)*c": (
        "{N} bought {a} {us} and {b} {vs}. Each cost ${c}. How much did {he} spend?",
        "Tickets cost ${c}. {a} adults and {b} children go. How much do they pay [in all|altogether|]?",
        "{N} earns ${c} an hour. {he} worked {a} hours on {day} and {b} hours on {later}. How much did {he} earn?",
    ),
    "(a-b)*c": (
        "{a} {xs} were for sale at ${c} each, and {b} nobody wanted. How much money did the others bring?",
        "{N} planned {a} hours of work at ${c} an hour and stopped {b} hours early. How much did {he} earn?",
        "{N} had {a} {xs} and [kept|lost] {b}. {he} sold the others for ${c} each. How much money did {he} get?",
    ),
    "(a-b)/c": (
        "{N} had ${a}. After buying {c} {xs} {he} had ${b}. How much did each {x} cost?",
        "{N} paid ${a} in all for {good}, which cost ${b}, and {c} {xs}. How much was each {x}?",
    ),
    "(a-b):c": (
        "{N} had ${a}. {he} spent ${b} on {good}. How many {xs} at ${c} each can {he} buy with the rest?",
        "{N} has saved ${b} and saves ${c} each week. In how many weeks will {he} have ${a}?",
    ),
    "(a+b):c": (
        "{N} earned ${a} {job} and got ${b} from {his} {kin}. How many {xs} [at ${c} each can {he} buy|can {he} buy for ${c} each]?",
        "{N} has {a} dollars and saves {b} more. A {x} costs {c} dollars. How many {xs} can {he} get?",
    ),
    "a*b+c": (
        "{N} bought {b} {xs} at ${a} each and {good} for ${c}. How much did {he} spend?",
        "{N} saved ${a} a week for {b} weeks. {he} also got ${c} from {his} {kin}. How much money does {he} have?",
        "A {firm} charges ${c} plus ${a} for each hour. How much do {b} hours cost?",
    ),
    "a*b-c": (
        "{N} sold {b} {xs} for ${a} each and spent ${c} on {good}. How much is left?",
        "{N} earned ${a} an hour for {b} hours and then paid ${c} for {ware}. How much does {he} have left?",
    ),
    "a-b*c": (
        "{N} had ${a} and bought {c} {xs} at ${b} each. How much money is left?",
        "{N} paid with ${a} for {c} {xs} that cost ${b} each. How much change did {he} get?",
    ),
    "a*b/c": (
        "{c} {xs} cost ${a}. How much do {b} {xs} cost?",
        "{N} earns ${a} in {c} days. How much is that in {b} days?",
    ),
    "a*b+c*d": (
        "{N} bought {b} {us} at ${a} each and {d} {vs} at ${c} each. How much did {he} spend?",
        "Adults pay ${a} and children ${c}. How much do {b} adults and {d} children pay?",
    ),
}

_ASK = "[What is|Calculate|Compute|Work out|Find|How much is|]"
BARE: Texts = {
    "a+b": (f"{_ASK} {{a}} + {{b}}", f"{_ASK} {{a}} plus {{b}}", f"{_ASK} the sum of {{a}} and {{b}}", "Add {a} and {b}",
            "{a} + {b} =", "Which number is {b} more than {a}?", "A number minus {a} is {b}. Find the number."),
    "a-b": (f"{_ASK} {{a}} - {{b}}", f"{_ASK} {{a}} minus {{b}}", f"{_ASK} the difference [between|of] {{a}} and {{b}}",
            "Subtract {b} from {a}", "{a} - {b} =", "Which number is {b} less than {a}?", "{b} + ? = {a}",
            "A number plus {b} is {a}. What is the number?"),
    "a*b": (f"{_ASK} {{a}} [*|x] {{b}}", f"{_ASK} {{a}} times {{b}}", f"{_ASK} the product of {{a}} and {{b}}",
            "Multiply {a} by {b}", "{a} * {b} =", "A number divided by {b} is {a}. Find the number."),
    "a/b": (f"{_ASK} {{a}} / {{b}}", f"{_ASK} {{a}} divided by {{b}}", "Divide {a} by {b}", "{a} / {b} =",
            "{b} times a number is {a}. Find the number.", "{b} * ? = {a}"),
    "a:b": ("How often does {b} go into {a}?", f"{_ASK} {{a}} divided by {{b}}"),
    "a+b+c": (f"{_ASK} {{a}} + {{b}} + {{c}}", f"{_ASK} the sum of {{a}}, {{b}} and {{c}}", "{a} + {b} + {c} ="),
    "a+b-c": (f"{_ASK} {{a}} + {{b}} - {{c}}", "{a} + {b} - {c} =", "Add {a} and {b}, then subtract {c}"),
    "a-b+c": (f"{_ASK} {{a}} - {{b}} + {{c}}", "{a} - {b} + {c} ="),
    "a-b-c": (f"{_ASK} {{a}} - {{b}} - {{c}}", "{a} - {b} - {c} ="),
    "(a+b)*c": (f"{_ASK} ({{a}} + {{b}}) * {{c}}", "Add {a} and {b}, then multiply by {c}"),
    "(a-b)*c": (f"{_ASK} ({{a}} - {{b}}) * {{c}}", "Subtract {b} from {a}, then multiply by {c}"),
    "(a+b)/c": (f"{_ASK} ({{a}} + {{b}}) / {{c}}", "Add {a} and {b}, then divide by {c}"),
    "(a-b)/c": (f"{_ASK} ({{a}} - {{b}}) / {{c}}", "{c} times a number plus {b} is {a}. Find the number."),
    "a*b+c": (f"{_ASK} {{a}} * {{b}} + {{c}}", "Multiply {a} by {b} and add {c}"),
    "a*b-c": (f"{_ASK} {{a}} * {{b}} - {{c}}", "Multiply {a} by {b} and subtract {c}"),
    "a-b*c": (f"{_ASK} {{a}} - {{b}} * {{c}}",),
    "a*b/c": (f"{_ASK} {{a}} * {{b}} / {{c}}",),
    "a*b*c": (f"{_ASK} {{a}} * {{b}} * {{c}}",),
}  # fmt: skip

OPENINGS = (
    "[It was a sunny day.|It was {day}.|{N} likes {xs}.|{N} went to the {place}.|{N} and {M} are friends.|{M} has {z} {ys}."
    "|{N} is {z} years old.|{M} was in the {place} too.|{N} also has {z} {ys}.|{N} helps at the {firm}.|There are {z} {ys} in the {place}.]"
)
"""Sentences that may precede a story and do not matter for its answer; `{z}` is a distracting number."""
