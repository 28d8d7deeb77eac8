// Package console speaks to the API of a console of Floe: tRPC over HTTP, with superjson around every value.
package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// An answer of the console is small; what is longer is none of it.
const maxAnswer = 16 << 20

// How long one request may take; the console answers within some seconds, or says why not.
const requestTime = 60 * time.Second

// Fault is why the console refused something, in PostgreSQL's form.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Detail  string `json:"detail"`
	Hint    string `json:"hint"`
	// The operation that has to end first, where that is why.
	blocking string
}

func (f *Fault) Error() string {
	text := f.Message
	if f.Detail != "" {
		text += "\nDETAIL: " + f.Detail
	}
	if f.Hint != "" {
		text += "\nHINT: " + f.Hint
	}
	return text
}

// IsFault says whether an error is a fault of the console with this code.
func IsFault(err error, code string) bool {
	var fault *Fault
	return errors.As(err, &fault) && fault.Code == code
}

// Client asks one console with one API token.
type Client struct {
	origin string
	token  string
	http   *http.Client
	// How often it looks whether an operation has ended.
	every time.Duration
}

// New makes a client. The token goes over TLS, or stays on this machine, and follows no redirect.
func New(address, token string) (*Client, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%q is not the address of a console, like https://floe.example.org", address)
	}
	if at.Scheme != "https" && !(at.Scheme == "http" && isLoopback(at.Hostname())) {
		return nil, fmt.Errorf("the token would be sent to %q without TLS: put a proxy with TLS in front of the console", address)
	}
	if len(token) < 16 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New(`the token is no API token: create one by "floe token create"`)
	}
	return &Client{
		origin: at.Scheme + "://" + at.Host,
		token:  token,
		http: &http.Client{
			Timeout: requestTime,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New("the console redirects: name the address that it has itself")
			},
		},
		every: time.Second,
	}, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

type wrapped struct {
	JSON json.RawMessage `json:"json"`
}

type answer struct {
	Result *struct {
		Data wrapped `json:"data"`
	} `json:"result"`
	Error *struct {
		JSON struct {
			Message string `json:"message"`
			Data    struct {
				Fault    *Fault  `json:"fault"`
				Blocking *string `json:"blockingOperationId"`
			} `json:"data"`
		} `json:"json"`
	} `json:"error"`
}

// Query asks a procedure that changes nothing; out may be nil.
func (c *Client) Query(ctx context.Context, procedure string, input, out any) error {
	body, err := wrap(input)
	if err != nil {
		return err
	}
	path := "/api/trpc/" + procedure + "?input=" + url.QueryEscape(string(body))
	return c.ask(ctx, http.MethodGet, path, nil, out)
}

// Mutate asks a procedure that changes something; out may be nil. It is not repeated by itself.
func (c *Client) Mutate(ctx context.Context, procedure string, input, out any) error {
	body, err := wrap(input)
	if err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, "/api/trpc/"+procedure, body, out)
}

func wrap(input any) ([]byte, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	return json.Marshal(wrapped{JSON: text})
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.origin+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("could not reach the console: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("could not read the console's answer: %w", err)
	}
	var read answer
	if json.Unmarshal(text, &read) != nil || (read.Result == nil && read.Error == nil) {
		return fmt.Errorf("the console answered with status %d and no words of its API: is %s the address of a console?",
			response.StatusCode, c.origin)
	}
	if read.Error != nil {
		if fault := read.Error.JSON.Data.Fault; fault != nil {
			if read.Error.JSON.Data.Blocking != nil {
				fault.blocking = *read.Error.JSON.Data.Blocking
			}
			return fault
		}
		return errors.New(read.Error.JSON.Message)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(read.Result.Data.JSON, out)
}

// Operation is what the console tells of one.
type Operation struct {
	State string `json:"state"`
	Title string `json:"title"`
	Ended *int64 `json:"endedAt"`
	Fault *Fault `json:"fault"`
}

// Wait waits for the end of an operation; what failed, or was cancelled, is an error. A console that is away for a while, as
// during an update, is waited for as long as the context allows.
func (c *Client) Wait(ctx context.Context, operation string) error {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for {
		var shown struct {
			Operation Operation `json:"operation"`
		}
		err := c.Query(ctx, "operation.show", map[string]any{"operationId": operation, "afterLogId": 0}, &shown)
		var fault *Fault
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("operation %s has not ended in time; it goes on: %w", operation, ctx.Err())
		case errors.As(err, &fault):
			return err
		case err == nil && shown.Operation.Ended != nil:
			if shown.Operation.State == "succeeded" {
				return nil
			}
			if shown.Operation.Fault != nil {
				return shown.Operation.Fault
			}
			return fmt.Errorf("%s: operation %s is %s", shown.Operation.Title, operation, shown.Operation.State)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Submit asks for what an operation carries out, and does not wait for its end. While another one is at work on the same
// cluster it waits for that: Terraform changes what does not depend on each other at the same time. The input holds a key, so
// that asking again starts nothing twice.
func (c *Client) Submit(ctx context.Context, procedure string, input map[string]any, out any) error {
	for {
		err := c.Mutate(ctx, procedure, input, out)
		var fault *Fault
		if !errors.As(err, &fault) || fault.blocking == "" {
			return err
		}
		// how it ended is nobody's business here
		if waited := c.Wait(ctx, fault.blocking); ctx.Err() != nil {
			return fmt.Errorf("%w\n%w", fault, waited)
		}
	}
}

// Order submits what is carried out by an operation, and waits for its end.
func (c *Client) Order(ctx context.Context, procedure string, input map[string]any) error {
	var ref struct {
		OperationID string `json:"operationId"`
	}
	if err := c.Submit(ctx, procedure, input, &ref); err != nil {
		return err
	}
	return c.Wait(ctx, ref.OperationID)
}
