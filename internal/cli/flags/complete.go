package flags

import (
	"github.com/spf13/cobra"
)

// Complete completes the value of a flag from a list.
func Complete(cmd *cobra.Command, flag string, values []string) {
	CompleteWith(cmd, flag, func(*cobra.Command) []string { return values })
}

// CompleteWith completes the value of a flag from a list that depends on the command.
func CompleteWith(cmd *cobra.Command, flag string, values func(*cobra.Command) []string) {
	CompleteBy(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteBy completes the value of a flag with a function.
func CompleteBy(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag does not exist
	}
}
