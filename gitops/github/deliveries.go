package github

import (
	"context"
	"iter"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A Delivery is an entry of the App's webhook log at GitHub, which reaches
// back three days (seven on GitHub Enterprise Server).
type Delivery struct {
	ID   int64
	GUID string
	// DeliveredAt is when GitHub tried, by its clock.
	DeliveredAt    time.Time
	Redelivery     bool
	Event          string
	Action         string
	InstallationID int64
	RepositoryID   int64
	// StatusCode is what the webhook answered, 0 when it could not be reached.
	StatusCode int
}

// Deliveries walks through the log, newest first, down to the entries that are
// older than since. It stops at the first error, which comes with an empty
// entry.
func (a *App) Deliveries(ctx context.Context, since time.Time) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		options := &gh.ListCursorOptions{PerPage: pageSize}
		for {
			var page []*gh.HookDelivery
			var next string
			err := a.call(ctx, "read the App's webhook log", func(ctx context.Context) error {
				found, response, err := a.jwt.Apps.ListHookDeliveries(ctx, options)
				if err == nil {
					page, next = found, response.Cursor
				}
				return err
			})
			if err != nil {
				yield(Delivery{}, err)
				return
			}
			for _, one := range page {
				delivery := deliveryOf(one)
				if delivery.DeliveredAt.Before(since) || !yield(delivery, nil) {
					return
				}
			}
			if next == "" || next == options.Cursor || len(page) == 0 {
				return
			}
			options.Cursor = next
		}
	}
}

// A DeliveredRequest is what GitHub sent.
type DeliveredRequest struct {
	Delivery
	// Headers are the request's, with GitHub's capitals.
	Headers map[string]string
	// Payload is the JSON body. It has the same meaning as the one that was
	// sent, but not the same bytes, so a signature does not fit it; that it
	// came over the API vouches for it.
	Payload []byte
}

// Delivery reads one entry of the log with its payload.
func (a *App) Delivery(ctx context.Context, id int64) (DeliveredRequest, error) {
	var request DeliveredRequest
	err := a.call(ctx, "read an entry of the App's webhook log", func(ctx context.Context) error {
		found, _, err := a.jwt.Apps.GetHookDelivery(ctx, id)
		if err != nil {
			return err
		}
		request.Delivery = deliveryOf(found)
		if found.Request != nil {
			request.Headers = found.Request.Headers
			if found.Request.RawPayload != nil {
				request.Payload = *found.Request.RawPayload
			}
		}
		return nil
	})
	return request, err
}

func deliveryOf(d *gh.HookDelivery) Delivery {
	one := Delivery{
		ID: d.GetID(), GUID: d.GetGUID(), DeliveredAt: d.GetDeliveredAt().Time, Redelivery: d.GetRedelivery(),
		Event: d.GetEvent(), Action: d.GetAction(), InstallationID: d.GetInstallationID(), RepositoryID: d.GetRepositoryID(),
		StatusCode: d.GetStatusCode(),
	}
	return one
}
