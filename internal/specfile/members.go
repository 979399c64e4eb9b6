package specfile

import (
	"reflect"
	"strconv"
	"time"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// members pair keys of an object with pointers to the Go values that they set. One list
// serves both reading a file and writing a plan.
type members []member

// A delay is a wait; 0 in a file means none.
type delay time.Duration

// read sets the values of the keys that get finds.
func (all members) read(get func(key string) *node) {
	for _, m := range all {
		if n := get(m.key); n != nil {
			setValue(m.value, n)
		}
	}
}

// setValue sets the value that to points to, of a kind that fits it.
func setValue(to any, n *node) {
	switch to := to.(type) {
	case *time.Duration:
		*to = duration(n)
	case *delay:
		if *to = delay(duration(n)); *to == 0 {
			*to = delay(task.NoDelay)
		}
	case *time.Time:
		*to = instantOf(n)
	case *label.Classification:
		*to = level(n)
	case **label.Classification:
		*to = new(level(n))
	case *llm.Money:
		*to = llm.Dollars(amount(n))
	case *[]task.Path:
		*to = pathList(n)
	case *filePaths:
		*to = filePathsOf(n)
	case *[]string:
		*to = textList(n)
	case *map[string][]task.Path:
		*to = revealOf(n, func(kind string) string { return kind })
	case **float64:
		*to = new(amount(n))
	case **int64:
		*to = new(int64(integer(n)))
	default:
		switch v := reflect.ValueOf(to).Elem(); v.Kind() {
		case reflect.String:
			v.SetString(n.text)
		case reflect.Bool:
			v.SetBool(n.text == "true")
		case reflect.Int:
			v.SetInt(int64(integer(n)))
		case reflect.Float64:
			v.SetFloat(amount(n))
		default:
			panic("specfile: no key sets a " + v.Type().String())
		}
	}
}

// write adds the keys whose values are set to an object.
func (all members) write(n *node) {
	for _, m := range all {
		n.set(m.key, nodeOf(m.value))
	}
}

// node returns an object with the keys whose values are set, or nil if none is.
func (all members) node() *node {
	n := objectNode()
	all.write(n)
	return n.orNil()
}

// nodeOf returns the value that from points to, or nil for its zero value.
func nodeOf(from any) *node {
	v := reflect.ValueOf(from).Elem()
	if v.IsZero() {
		return nil
	}
	switch from := from.(type) {
	case *time.Duration:
		return millisNode(*from)
	case *delay:
		return millisNode(max(time.Duration(*from), 0))
	case *time.Time:
		return textNode(from.UTC().Format(time.RFC3339Nano))
	case *label.Classification:
		return textNode(from.String())
	case *llm.Money:
		return floatsNode(from.Dollars())
	case *[]task.Path:
		return pathsNode(*from)
	case *filePaths:
		return textsNode(from.globs())
	case *map[string][]task.Path:
		n := objectNode()
		for _, kind := range sortedKeys(*from) {
			n.set(kind, pathsNode((*from)[kind]))
		}
		return n.orNil()
	case **float64:
		return floatsNode(**from)
	}
	switch v.Kind() {
	case reflect.String:
		return textNode(v.String())
	case reflect.Bool:
		return boolNode(v.Bool())
	case reflect.Int:
		return intNode(int(v.Int()))
	case reflect.Float64:
		return floatsNode(v.Float())
	case reflect.Slice:
		if v.Len() == 0 {
			return nil
		}
		return textsNode(v.Interface().([]string))
	}
	panic("specfile: no key says a " + v.Type().String())
}

// floatsNode writes a number as briefly as it can be read back.
func floatsNode(f float64) *node { return numberNode(strconv.FormatFloat(f, 'f', -1, 64)) }
