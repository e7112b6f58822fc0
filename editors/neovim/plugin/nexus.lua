--- Commands, and the language server for the files that Nexus reads.

if vim.g.loaded_nexus then
  return
end
vim.g.loaded_nexus = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify(
    'nexus: Neovim 0.11 or later is needed; this is ' .. tostring(vim.version()),
    vim.log.levels.ERROR
  )
  return
end

local function command(name, view, options)
  vim.api.nvim_create_user_command(name, function(call)
    require('nexus.view')[view](call)
  end, options)
end

command('NexusContext', 'context', { nargs = '*', desc = 'What the model gets, and what each part costs' })
command('NexusPreview', 'preview', { desc = 'The system prompt, and the file that each part comes from' })
command('NexusLayers', 'layers', { desc = 'Layers of this folder: files, status, problems' })
command('NexusUsage', 'usage', { desc = 'Token table of the session' })
command('NexusInit', 'init', { nargs = '?', complete = 'dir', desc = 'Create .nexus3/; never overwrites' })

if vim.g.nexus_enable ~= false then
  vim.lsp.enable('nexus')
end
