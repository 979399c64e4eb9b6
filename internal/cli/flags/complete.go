package flags

import (
	"github.com/spf13/cobra"
)

// Complete tells shells the values of a flag.
func Complete(cmd *cobra.Command, flag string, values []string) {
	CompleteWith(cmd, flag, func(*cobra.Command) []string { return values })
}

// CompleteWith tells shells the values of a flag that depend on the command.
func CompleteWith(cmd *cobra.Command, flag string, values func(*cobra.Command) []string) {
	CompleteBy(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteBy has a function complete the value of a flag.
func CompleteBy(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag was added the line before
	}
}
