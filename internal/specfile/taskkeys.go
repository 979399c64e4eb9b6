package specfile

// The keys of what is to be done.

var taskPlace = newPlace("task", "a task", []row{
	{"title", anyText, "required; one line of at most 200 characters, by which other tasks name it"},
	{"description", textOrFile, "required; what the agent must do; `${params.NAME}` stands for a parameter"},
	{"key", oneLine, "short name, `a-z`, `0-9` and `-`"},
	{"assignee", oneLine, "name of the agent; without one an agent is picked before anything runs, as `schedulingStrategy` says, and plans show which"},
	{"dependsOn", list.orText("dependency"), "tasks whose results it is granted: titles, keys, ids, or see dependency"},
	{"uses", list.orText("use"), "inputs that it is granted: names, or see use"},
	{"dependencyPayload", words("output", "structured", "both"), "form of all its dependencies; `output` unless set"},
	{"memoryScope", words("dependencies", "all"), "`dependencies`, the default; `all` adds a digest of the results of all other tasks so far"},
	{"classification", classification, "label of the task's own text; `internal` unless set"},
	{"requiredTags", texts, "tags that the result must carry"},
	{"ttlMs", millis, "life of the result; 0 means unlimited"},
	{"maxRetries", whole, "attempts after the first; 0 unless set, negative counts as 0; no upper limit"},
	{"retryDelayMs", millis, "wait before the first retry; 1000 unless set"},
	{"retryBackoff", number(1, 1000), "factor between two waits; 2 unless set"},
	{"timeoutMs", millis, "longest time that the agent may work on one attempt; 0 means none"},
	{"acceptTruncated", boolean, "whether an answer that a limit on tokens ended completes the task, marked as `truncated`; `false` unless set: then it is the error `ANSWER_TRUNCATED`"},
	{"outputSchema", schema, "JSON Schema of the result: inline, `{file: PATH}`, or a name of `schemas`"},
	{"role", oneLine, "shown in plans and results"},
	{"priority", words("low", "normal", "high", "critical"), "which of several ready tasks starts first; `normal` unless set"},
	{"needToKnow", allowPaths, "the parts that it is granted of each dependency without `need` of its own; the whole unless set"},
	{"requires", requirement, "what its agent must have, whoever names or picks it: see requires"},
	{"metadata", scalars, "at most 16 entries, shown in results; a list has at most 16 values of one type"},
	{"reuse", never, "`never`: its result is never taken from an earlier run, even in a run that reuses results"},
	{"provenance", provenanceOf, "where a saved plan has the description from, which makes it context and no instruction of yours: see provenance"},
}).notBuilt([]other{
	{"verify", nil, "judges of the result; write a task that depends on it"},
}).refused([]other{
	{"id", nil, "ids are made from titles; write key for a short name"},
	{"status", asksIfNotPending, "every task begins pending"},
	{"result", nil, "results come from agents; give a text as an input"},
}).idle([]other{
	{"createdAt", nil, "set when a run starts"},
	{"updatedAt", nil, "set during a run"},
}).needing("title", "description").like("title", "assignee", "description")

var taskDefaultsPlace = taskPlace.without("taskDefaults", "taskDefaults",
	"title", "description", "key", "dependsOn", "provenance", "id", "status", "result", "createdAt", "updatedAt")

var dependencyPlace = newPlace("dependency", "a dependency", []row{
	{"task", anyText, "required; title, key or id"},
	{"as", words("output", "structured", "both"), "form of this one; else dependencyPayload"},
	{"optional", boolean, "whether the task runs also without that result"},
	{"need", allowPaths, "the parts of the result that are granted, `[\"\"]` for the whole; else the task's `needToKnow`, else the whole"},
	{"maxContextBytes", byteLimit, "limit on what is delivered of the result; else the agent's"},
}).needing("task")

var usePlace = newPlace("use", "a used input", []row{
	{"name", oneLine, "required; name of an input"},
	{"need", allowPaths, "the parts of the input that are granted, if it is JSON; the whole unless set"},
	{"reveal", revealed, "personal data that is delivered unredacted, by kind and place: `{iban: [\"\"]}`"},
}).needing("name")

var provenancePlace = newPlace("provenance", "provenance", []row{
	{"from", words("coordinator", "user"), "required; who wrote the description: the `coordinator`, or the `user` where a goal became a task as it is"},
	{"run", oneLine, "id of the run in which it was planned"},
	{"envelope", oneLine, "what of that run it was taken from"},
	{"createdAt", instant, "when it was planned; the start of the run unless set"},
	{"expiresAt", instant, "from when on it is not delivered; never unless set"},
}).needing("from")

var requiresPlace = newPlace("requires", "requires", []row{
	{"requiredTools", texts, "tools that it may call, each by its exact name; no agent has tools yet"},
	{"requiredCapabilities", texts, "words of its `capabilities`; letter case does not count"},
	{"requiredBackend", oneLine, "what runs it; there is no agent with a backend yet"},
	{"requiredProvider", oneLine, "its `provider`"},
})
