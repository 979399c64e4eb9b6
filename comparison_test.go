package runteam_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shownClaim is what a row of a page says of runteam, and what shows it: tests, and scripts of internal/cli. In
// comparison.txt, each part begins with the name of its row.
type shownClaim struct{ row, claim, by string }

// shownPages are the pages for users of open-multi-agent with all rows of their tables. Whoever changes a claim finds here
// which tests have to show the new one.
var shownPages = map[string][]shownClaim{
	"docs/explanation/comparison.md": {
		{"result of a dependency", "fenced, labeled, gated", "comparison.txt TestFencesDifferAndAreInNoPayload TestOnlyWhatIsGrantedArrives"},
		{"labels, clearances, expiry, receipts", "yes", "TestResultTakesTheLabelOfWhatWasRead TestClearanceRule TestExpiryIsWallClock TestReceiptsAccountForEveryByte"},
		{"rules for pairs of agents, redaction, declassifiers", "yes", "TestSecretFlowsByAnExactRuleOnly TestCredentialsAreRedacted TestDeclassifier"},
		{"who could see what before a run; who saw what after it", "yes", "comparison.txt TestAdmissionPredictsTheGate TestExplainAndVerifyARunOfTheJournal"},
		{"checks before a run", "the whole file at once, and the flow of every label", "comparison.txt TestAllProblemsOfAFileAreReported TestEachCauseOfALabelConflictIsOneProblem"},
		{"a failed run", "results so far, causes and roots; `resume`", "comparison.txt TestSummaryGroupsFailuresOfOneCause TestResumeRepeatsOnlyAffectedTasks"},
		{"after a crash", "an append-only journal: 2 MB for the same, 16 MB before the run ends", "TestJournalIsSmall TestRunResumesAfterEveryCommit"},
		{"the same prompt in a later run", "taken from the journal with `--reuse`", "reuse.txt TestReuseTakesAnswersToTheSamePrompts"},
		{"1,000 independent tasks, dispatch alone", "4 ms", "TestDispatchTakesMilliseconds TestCosts"},
		{"goal, plan, synthesis", "yes; the plan passes the same checks, with one correction", "goal.txt TestPlanIsCorrectedOnce TestGoalIsPlannedCorrectedAndAnswered"},
		{"shared memory, messages", "gated for each reader; the runtime sets the sender", "TestMemoryIsGated TestMessagesAreGated TestAgentCannotForgeTheSender"},
		{"token and cost budgets", "reserved before it, for runs and for agents; only a reply without `maxTokens` may overdraw", "TestBudgetsAreNotOverdrawn TestEveryBudgetAdmitsTheCall TestBudgetOfAnAgentEndsItsOwnTasks TestRepliesWithoutALimitOverdrawABudgetOnce"},
		{"tools, MCP", "yes; each call passes the gate, and plans show which tools could see what", "TestToolIsBehindTheGate TestAgentOfASpecCallsAnMCPServer TestFlowFollowsTheToolsOfATask"},
		{"process backends", "yes; confined to their workspace on Linux", "TestConfinedProcess"},
		{"files of tools", "in a workspace of each attempt, redacted for its agent; changes as a patch", "TestWorkspacesOfTasksAreApart TestInterruptedRetryHasItsOwnWorkspace TestFilesAreRedactedOneByOne TestPatchAppliesToTheInput"},
		{"approvals of tool calls and plans", "yes; also of what is declassified; bound to what was shown", "TestAnApprovalIsForOneCall TestAPlanIsApprovedOnTheTerminal TestAPersonDecidesAboutADeclassifier TestAnAnswerApprovesNothingThatItsSenderWasNotShown"},
		{"`verify`", "yes; judges are tasks that read through the gate", "TestVerify TestPromptsOfJudges TestFlowOfJudges"},
		{"approvals of rounds and single tasks", "no; refused by name; write `approve`, or let a person have a task", "comparison.txt people.txt"},
		{"providers", "OpenAI-compatible endpoints", "TestKeysOfTheOriginal TestSuggestedProviderEndpointWorks"},
		{"streaming to the user", "yes, with `--stream`; gated as any result", "TestAnswerIsPrintedWhileItIsWritten TestStreamShowsOnlyWhatTheCallerMaySee"},
	},
	"docs/how-to/migrate-from-open-multi-agent.md": {
		{"an agent reads only its dependencies and inputs", "add `dependsOn` where a task relied on shared memory, or `memoryScope: all`", "TestOnlyWhatIsGrantedArrives TestMemoryIsForTasksOfScopeAllOnly"},
		{"everything is `internal` unless labeled, and agents read up to `internal`", "nothing, until you label an input; then set `accepts`", "comparison.txt TestUnlabeledIsInternal"},
		{"secrets and personal data are redacted on the way to agents", "`reveal` the kinds that an agent needs", "comparison.txt TestCredentialsAreRedacted"},
		{"an unknown assignee, a duplicate title or an unknown key is an error", "correct the file", "migration.txt"},
		{"messages are delivered once", "send again if a later task needs the text", "TestEachMessageIsTakenOnce"},
		{"budgets are reserved before a call", "a run may stop earlier; set `maxTokens`, since a reply without it may overspend; see [Budgets](../reference/spec-file.md#budgets)", "budget.txt TestBudgetsAreNotOverdrawn TestRepliesWithoutALimitOverdrawABudgetOnce"},
		{"providers other than OpenAI-compatible endpoints, such as `provider: anthropic`, are an error; an agent without a provider calls OpenAI, not Anthropic", "use the OpenAI-compatible endpoint of the provider, as the error says; see [Providers](../reference/providers.md)", "migration.txt TestKeysOfTheOriginal TestSuggestedProviderEndpointWorks"},
		{"`delegate_to_agent` in the tools of an agent", "write an edge with `delegate: true`, which gives the tool", "migration.txt TestEdgesToDelegates"},
		{"tools work in a folder of the task, not in a shared one", "use relative paths, bring files with `inputs` that have `dir`, and pass them on with `files`", "migration.txt TestWorkspacesOfTasksAreApart"},
		{"tasks that the coordinator plans have no tools", "write `coordinator: {mayGrant: [tools]}`", "migration.txt"},
		{"`tools` adds to `toolPreset` instead of narrowing it, and one beside the other is an error", "list all tools, or write `toolPreset` and `disallowedTools`", "migration.txt"},
		{"`customTools`", "bring them in a Go program", "migration.txt"},
		{"MCP servers are listed under `tools` of the file, with the tools that agents may have", "see [Tools](../reference/spec-file.md#tools)", "TestAgentOfASpecCallsAnMCPServer"},
		{"an external call from untrusted context is refused", "name the tool in `allowUntrusted` of the agent", "TestCheckNamesTheUntrustedSource"},
		{"`judges` of `verify` are names of agents of the team, and all of them are asked at the same time", "list the judges under `agents`", "TestJudgesOfSpecs TestVerify"},
		{"a result that the judges of `verify` reject fails its task", "write `onDissent: keep` to go on with it", "TestVerify"},
		{"approval of plans (`onPlanReady`) is a key of the coordinator", "write `coordinator: {approve: NAME}`", "migration.txt TestAPlanIsApprovedOnTheTerminal"},
		{"approval of rounds", "an error; let a person have a task", "migration.txt people.txt"},
	},
}

// The pages claim nothing that no test shows.
func TestClaimsForUsersOfOpenMultiAgentAreShown(t *testing.T) {
	t.Parallel()
	known := namesOfTests(t)
	for page, claims := range shownPages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		var rows, shown [][2]string
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.Trim(line, "| \n"), " | ")
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") && !strings.HasPrefix(line, "| |") && !strings.HasPrefix(line, "| difference") {
				rows = append(rows, [2]string{cells[0], cells[len(cells)-1]})
			}
		}
		for _, c := range claims {
			shown = append(shown, [2]string{c.row, c.claim})
			require.NotEmpty(t, c.by, "%s is not shown", c.row)
			for by := range strings.FieldsSeq(c.by) {
				if !strings.HasSuffix(by, ".txt") {
					require.True(t, known[by], "%s: there is no test %s", c.row, by)
					continue
				}
				script, err := os.ReadFile(filepath.Join("internal/cli/testdata/script", by))
				require.NoError(t, err, c.row)
				if by == "comparison.txt" && strings.HasSuffix(page, "comparison.md") {
					require.Contains(t, string(script), "\n# "+c.row+"\n")
				}
			}
		}
		require.Equal(t, rows, shown, "the rows of %s, and those that this test knows", page)
	}
}
