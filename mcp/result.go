package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/tool"
)

// resultOf returns the result of a call. Contents other than text are named, and not passed on.
func resultOf(res *sdk.CallToolResult) (tool.Result, error) {
	out := tool.Result{IsError: res.IsError}
	var text []string
	for _, content := range res.Content {
		switch c := content.(type) {
		case *sdk.TextContent:
			text = append(text, c.Text)
		case *sdk.ImageContent:
			text = append(text, fmt.Sprintf("[image %s, %d bytes: not shown]", oneline.Of(c.MIMEType), len(c.Data)))
		case *sdk.AudioContent:
			text = append(text, fmt.Sprintf("[audio %s, %d bytes: not shown]", oneline.Of(c.MIMEType), len(c.Data)))
		case *sdk.ResourceLink:
			text = append(text, "[link "+oneline.Of(c.URI)+"]")
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				text = append(text, c.Resource.Text)
			} else if c.Resource != nil {
				text = append(text, fmt.Sprintf("[resource %s, %d bytes: not shown]", oneline.Of(c.Resource.URI), len(c.Resource.Blob)))
			}
		}
	}
	out.Text = strings.Join(text, "\n")
	if res.StructuredContent == nil {
		return out, nil
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return tool.Result{}, fmt.Errorf("structured content: %w", err)
	}
	if out.JSON = raw; sameJSON(out.Text, raw) {
		out.Text = "" // servers repeat the structured content as a text for older clients
	}
	return out, nil
}

// sameJSON reports whether a text is the JSON value.
func sameJSON(text string, raw json.RawMessage) bool {
	var a, b any
	if json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal(raw, &b) != nil {
		return false
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// masked returns the result of a call with the secrets of the server replaced.
func (s *Server) masked(r tool.Result, err error) (tool.Result, error) {
	masks := s.masks()
	if r.Text = masks.Text(r.Text); len(r.JSON) > 0 {
		if r.JSON = masks.JSON(r.JSON); !json.Valid(r.JSON) {
			return tool.Result{}, errors.New("structured content: a secret of the server is part of a number")
		}
	}
	return r, masks.Error(err)
}
