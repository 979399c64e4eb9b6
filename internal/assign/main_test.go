package assign_test

import "github.com/runteam/runteam/internal/slowtest"

func init() { slowtest.Checks(25) }
