// Package flags holds the flags, arguments and completions that several commands share.
package flags

import (
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/spf13/cobra"
)

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s takes no argument", cmd.CommandPath())
	}
	return nil
}

// AtMost returns a check that refuses more than so many arguments; what names those that the
// command takes.
func AtMost(most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > most {
			return exit.Usagef("%s takes %s, not %d: %s", cmd.CommandPath(), what, len(args), strings.Join(args, " "))
		}
		return nil
	}
}

// Pairs reads the values of a flag that sets names.
func Pairs(flag, form string, given []string) (map[string]string, error) {
	all := make(map[string]string, len(given))
	for _, one := range given {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, exit.Usagef("--%s %q: write %s", flag, one, form)
		}
		if _, twice := all[name]; twice {
			return nil, exit.Usagef("--%s %s is given twice", flag, name)
		}
		all[name] = value
	}
	return all, nil
}
