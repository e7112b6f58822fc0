--- An editor that ends, politely or not, while the daemon runs.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')

observe.run(function()
  observe.install()
  if vim.env.NEXUS_TEST_PROCESS == 'of its own' then
    vim.lsp.config('nexus', { cmd = { 'nexus', 'serve' } })
  end
  observe.open_attached(vim.env.NEXUS_TEST_WORKSPACE .. '/backend/auth-service/.nexus3/config.json')
  observe.seen.process = observe.shared_daemon() and 'shared' or 'of its own'
  observe.seen.clients = #vim.lsp.get_clients({ name = 'nexus' })
end)

if vim.env.NEXUS_TEST_LEAVE == 'killed' then
  vim.uv.kill(vim.uv.os_getpid(), 'sigkill')
end
vim.cmd.quitall({ bang = true })
