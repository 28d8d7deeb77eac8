package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const token = "floe-0123456789abcdef"

func serving(t *testing.T, answers func(r *http.Request) (int, string)) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answers(r)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	client, err := New(server.URL, token)
	if err != nil {
		t.Fatal(err)
	}
	client.every = time.Millisecond
	return client
}

func TestTheTokenGoesNowhereWithoutTLS(t *testing.T) {
	for _, address := range []string{"http://10.0.0.1:3000", "http://localhost.example.org", "ftp://127.0.0.1", "floe", ""} {
		if _, err := New(address, token); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
	for _, address := range []string{"https://floe.example.org", "http://127.0.0.1:3000", "http://[::1]:3000", "http://localhost:1"} {
		if _, err := New(address, token); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := New("https://floe.example.org", "no token\nX: y"); err == nil {
		t.Error("a token with a line end was accepted")
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	asked := 0
	there := serving(t, func(*http.Request) (int, string) { asked++; return 200, `{"result":{"data":{"json":{}}}}` })
	server := httptest.NewServer(http.RedirectHandler(there.origin, http.StatusTemporaryRedirect))
	defer server.Close()
	client, _ := New(server.URL, token)
	if err := client.Mutate(context.Background(), "instance.start", nil, nil); err == nil || asked != 0 {
		t.Errorf("it was followed: %v, asked %d times", err, asked)
	}
}

func TestAnInputIsWrappedAndAFaultKeepsItsWords(t *testing.T) {
	client := serving(t, func(r *http.Request) (int, string) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			return 401, `{}`
		}
		if r.Method == http.MethodGet {
			var input struct{ JSON struct{ Name string } }
			_ = json.Unmarshal([]byte(r.URL.Query().Get("input")), &input)
			return 200, `{"result":{"data":{"json":{"name":"` + input.JSON.Name + `"}}}}`
		}
		return 409, `{"error":{"json":{"message":"m","data":{"fault":{"code":"instance.name_taken","message":"taken","hint":"Choose another."}}}}}`
	})
	var out struct{ Name string }
	if err := client.Query(context.Background(), "instance.show", map[string]string{"name": "a&b"}, &out); err != nil || out.Name != "a&b" {
		t.Errorf("%v %q", err, out.Name)
	}
	err := client.Mutate(context.Background(), "instance.create", nil, nil)
	if !IsFault(err, "instance.name_taken") || !strings.Contains(err.Error(), "HINT: Choose another.") {
		t.Errorf("%v", err)
	}
}

func TestAnOperationIsWaitedForThroughAConsoleThatIsAway(t *testing.T) {
	asked := 0
	client := serving(t, func(r *http.Request) (int, string) {
		asked++
		switch {
		case r.Method == http.MethodPost:
			return 200, `{"result":{"data":{"json":{"operationId":"o","instanceId":"i"}}}}`
		case asked == 3:
			return 502, `<html>`
		case asked < 5:
			return 200, `{"result":{"data":{"json":{"operation":{"state":"running","endedAt":null}}}}}`
		case strings.Contains(r.URL.RawQuery, "o"):
			return 200, `{"result":{"data":{"json":{"operation":{"state":"failed","endedAt":1,"fault":{"code":"x.y","message":"no room"}}}}}}`
		}
		return 500, ``
	})
	err := client.Order(context.Background(), "instance.start", nil)
	if !IsFault(err, "x.y") || asked < 5 {
		t.Errorf("%v after %d", err, asked)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	endless := serving(t, func(*http.Request) (int, string) {
		return 200, `{"result":{"data":{"json":{"operation":{"state":"running","endedAt":null}}}}}`
	})
	if err := endless.Wait(ctx, "o"); err == nil || !strings.Contains(err.Error(), "it goes on") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsAtWorkOnTheSameClusterIsWaitedFor(t *testing.T) {
	ordered, looked := 0, 0
	client := serving(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			looked++
			if looked < 3 {
				return 200, `{"result":{"data":{"json":{"operation":{"state":"running","endedAt":null}}}}}`
			}
			return 200, `{"result":{"data":{"json":{"operation":{"state":"failed","endedAt":1,"fault":{"code":"of.another","message":"m"}}}}}}`
		}
		ordered++
		if ordered < 3 {
			return 409, `{"error":{"json":{"data":{"fault":{"code":"operation.conflict","message":"busy"},"blockingOperationId":"b"}}}}`
		}
		return 200, `{"result":{"data":{"json":{"operationId":"o"}}}}`
	})
	if err := client.Submit(context.Background(), "setting.set", nil, nil); err != nil || ordered != 3 {
		t.Errorf("%v after %d", err, ordered)
	}
	stuck := serving(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			return 200, `{"result":{"data":{"json":{"operation":{"state":"running","endedAt":null}}}}}`
		}
		return 409, `{"error":{"json":{"data":{"fault":{"code":"operation.conflict","message":"busy"},"blockingOperationId":"b"}}}}`
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := stuck.Submit(ctx, "setting.set", nil, nil); !IsFault(err, "operation.conflict") {
		t.Errorf("%v", err)
	}
}

func TestAVerifierIsPostgreSQLs(t *testing.T) {
	// as PostgreSQL's own regression test of encrypted passwords has it
	salt, _ := base64.StdEncoding.DecodeString("MTIzNDU2Nzg5MDEyMzQ1Ng==")
	got, err := scramVerifier("pencil", salt)
	if err != nil || !strings.HasPrefix(got, "SCRAM-SHA-256$4096:MTIzNDU2Nzg5MDEyMzQ1Ng==$") {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range []string{"", "pass\nword", "naïve"} {
		if _, err := ScramVerifier(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
