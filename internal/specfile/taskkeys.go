package specfile

// The keys of what is to be done.

var taskPlace = newPlace("task", "a task",
	key{"title", anyText, Works, nil, "required; one line of at most 200 characters, by which other tasks name it"},
	key{"description", textOrFile, Works, nil, "required; what the agent must do; `${params.NAME}` stands for a parameter"},
	key{"key", oneLine, Works, nil, "short name, `a-z`, `0-9` and `-`"},
	key{"assignee", oneLine, Works, nil, "name of the agent; without one an agent is picked before anything runs, as `schedulingStrategy` says, and plans show which"},
	key{"dependsOn", list.orText("dependency"), Works, nil, "tasks whose results it is granted: titles, keys, ids, or see dependency"},
	key{"uses", list.orText("use"), Works, nil, "inputs that it is granted: names, or see use"},
	key{"dependencyPayload", words("output", "structured", "both"), Works, nil, "form of all its dependencies; `output` unless set"},
	key{"memoryScope", words("dependencies", "all"), Works, nil, "`dependencies`, the default; `all` adds a digest of what every other task has come to by then"},
	key{"classification", classification, Works, nil, "label of the task's own text; `internal` unless set"},
	key{"requiredTags", texts, Works, nil, "tags that the result must carry"},
	key{"ttlMs", millis, Works, nil, "life of the result; 0 means unlimited"},
	key{"maxRetries", whole, Works, nil, "attempts after the first; 0 unless set, negative counts as 0"},
	key{"retryDelayMs", millis, Works, nil, "wait before the first retry; 1000 unless set"},
	key{"retryBackoff", number(1, 1000), Works, nil, "factor between two waits; 2 unless set"},
	key{"timeoutMs", millis, Works, nil, "longest time that the agent may work on one attempt; 0 means none"},
	key{"acceptTruncated", boolean, Works, nil, "whether an answer that a limit on tokens ended completes the task, marked as `truncated`; `false` unless set: then it is the error `ANSWER_TRUNCATED`"},
	key{"outputSchema", schema, Works, nil, "JSON Schema of the result: inline, `{file: PATH}`, or a name of `schemas`"},
	key{"role", oneLine, Works, nil, "shown in plans and results"},
	key{"priority", words("low", "normal", "high", "critical"), Works, nil, "who goes first among tasks that are ready; `normal` unless set"},
	key{"needToKnow", allowPaths, Works, nil, "the parts that it is granted of each dependency without `need` of its own; the whole unless set"},
	key{"requires", requirement, Works, nil, "what its agent must have, whoever names or picks it: see requires"},
	key{"metadata", scalars, Works, nil, "at most 16 entries, shown in results; a list has at most 16 values of one type"},
	key{"reuse", never, Works, nil, "`never`: its result is always made anew, also in a run that takes results of earlier ones"},
	key{"provenance", provenance, Works, nil, "where a saved plan has the description from, which makes it context and no instruction of yours: see provenance"},
	key{"verify", anything, NotBuilt, nil, "judges of the result; write a task that depends on it"},
	key{"id", anything, Refused, nil, "ids are made from titles; write key for a short name"},
	key{"status", anything, Refused, asksIfNotPending, "every task begins pending"},
	key{"result", anything, Refused, nil, "results come from agents; give a text as an input"},
	key{"createdAt", anything, Idle, nil, "set when a run starts"},
	key{"updatedAt", anything, Idle, nil, "set during a run"},
).needing("title", "description").like("title", "assignee", "description")

var taskDefaultsPlace = taskPlace.without("taskDefaults", "taskDefaults",
	"title", "description", "key", "dependsOn", "provenance", "id", "status", "result", "createdAt", "updatedAt")

var dependencyPlace = newPlace("dependency", "a dependency",
	key{"task", anyText, Works, nil, "required; title, key or id"},
	key{"as", words("output", "structured", "both"), Works, nil, "form of this one; else dependencyPayload"},
	key{"optional", boolean, Works, nil, "whether the task runs also without that result"},
	key{"need", allowPaths, Works, nil, "the parts of the result that are granted, `[\"\"]` for the whole; else the task's `needToKnow`, else the whole"},
	key{"maxContextBytes", byteLimit, Works, nil, "limit on what is delivered of the result; else the agent's"},
).needing("task")

var usePlace = newPlace("use", "a used input",
	key{"name", oneLine, Works, nil, "required; name of an input"},
	key{"need", allowPaths, Works, nil, "the parts of the input that are granted, if it is JSON; the whole unless set"},
	key{"reveal", revealed, Works, nil, "personal data that crosses in clear, by kind, and where: `{iban: [\"\"]}`"},
).needing("name")

var provenancePlace = newPlace("provenance", "provenance",
	key{"from", words("coordinator", "user"), Works, nil, "required; who wrote the description: the `coordinator`, or the `user` where a goal became a task as it is"},
	key{"run", oneLine, Works, nil, "id of the run in which it was planned"},
	key{"envelope", oneLine, Works, nil, "what of that run it was taken from"},
	key{"createdAt", instant, Works, nil, "when it was planned; the start of the run unless set"},
	key{"expiresAt", instant, Works, nil, "from when on it is not delivered; never unless set"},
).needing("from")

var requiresPlace = newPlace("requires", "requires",
	key{"requiredTools", texts, Works, nil, "tools that it may call, each by its exact name; no agent has tools yet"},
	key{"requiredCapabilities", texts, Works, nil, "words of its `capabilities`; letter case does not count"},
	key{"requiredBackend", oneLine, Works, nil, "what runs it; there is no agent with a backend yet"},
	key{"requiredProvider", oneLine, Works, nil, "its `provider`"},
)
