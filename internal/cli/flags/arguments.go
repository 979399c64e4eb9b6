// Package flags holds what the flags and arguments of several commands have in common.
package flags

import (
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/spf13/cobra"
)

// AtMostOneSpec accepts one argument or none.
func AtMostOneSpec(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exit.Usagef("%s takes one SPEC, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " "))
	}
	return nil
}

// AtMostOneRun accepts one RUN or none.
func AtMostOneRun(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return exit.Usagef("%s takes one RUN, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " "))
	case len(args) == 1 && args[0] == "":
		return exit.Usagef("RUN is empty: write the id of a run, or leave it out for the last one")
	}
	return nil
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
			return nil, exit.Usagef("--%s %s stands twice", flag, name)
		}
		all[name] = value
	}
	return all, nil
}
