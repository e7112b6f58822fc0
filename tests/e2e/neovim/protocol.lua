--- A plugin of another protocol number than the daemon's: what the user sees.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')

observe.run(function()
  observe.install()
  vim.lsp.config('nexus', { capabilities = { experimental = { nexus = { protocol = 2 } } } })
  observe.open_attached(vim.env.NEXUS_TEST_WORKSPACE .. '/backend/auth-service/.nexus3/config.json')
  observe.wait('window/showMessage', function()
    return vim.fn.execute('messages'):find('Update', 1, true) ~= nil
  end)
  observe.seen.messages = vim.trim(vim.fn.execute('messages'))
end)

vim.cmd.quitall({ bang = true })
