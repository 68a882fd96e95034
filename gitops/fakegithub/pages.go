package fakegithub

import "github.com/labstack/echo/v4"

func (s *Server) routePages(e *echo.Echo) {}

func (s *Server) errorPage(c echo.Context, failure *apiError) error {
	return c.String(failure.status, failure.message)
}
